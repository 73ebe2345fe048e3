"""What a study trains: variants of one training, each from several seeds.

The folder of a study:

```
trainings.toml           the configuration of every training
trainings/VARIANT-SEED/  the run folder of each, as `yardmaster train` makes it
```

Results stand beside them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.experiments.training.config import Layer, TrainConfig, config_from
from yardmaster.experiments.training.folder import RunFolder, read_json, write_whole
from yardmaster.experiments.training.tables import to_toml

DOCUMENT = "trainings.toml"
FOLDER = "trainings"
ENDED = ("finished", "stopped early")
"""How a training stands that has nothing left to do."""


@dataclass(frozen=True, slots=True)
class Training:
    """One training of a study."""

    variant: str
    seed: int
    config: TrainConfig

    @property
    def name(self) -> str:
        """Its name for files: the variant's words and the seed."""
        word = "".join(c if c.isalnum() or c in "-_" else "-" for c in self.variant)
        return f"{word}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All trainings of a study, and where they are."""

    folder: Path
    trainings: tuple[Training, ...]

    def path(self, training: Training) -> Path:
        """Return the run folder of a training."""
        return self.folder / FOLDER / training.name

    def is_finished(self, training: Training) -> bool:
        """Whether a training has nothing left to do."""
        return status_of(RunFolder(self.path(training))) in ENDED

    def is_untrained(self, training: Training) -> bool:
        """Whether a finished training was never better than before its first step."""
        folder = RunFolder(self.path(training))
        return self.is_finished(training) and read_json(folder.about).get("best_steps") == 0

    def steps_done(self, training: Training) -> int:
        """Return the environment steps that a training has behind it, as far as it was noted."""
        folder = RunFolder(self.path(training))
        return int(read_json(folder.about).get("steps", 0)) if folder.is_run() else 0

    def refuse_others(self, *, overwrite: bool = False) -> None:
        """Complain about a folder that holds other trainings, unless they may go.

        Raises:
            YardmasterError: if it does.
        """
        document = self.folder / DOCUMENT
        if overwrite or not document.is_file():
            return
        if document.read_text(encoding="utf-8") != self._text():
            raise YardmasterError(
                f"{self.folder} holds other trainings (see {DOCUMENT}). Choose another place with"
                " --out; or --overwrite them, which keeps those that both have in common."
            )

    def take_up(self) -> None:
        """Make the folder the one of these trainings; those of other configurations go.

        Raises:
            YardmasterError: if it cannot be written.
        """
        document, text = self.folder / DOCUMENT, self._text()
        try:
            if document.is_file() and document.read_text(encoding="utf-8") == text:
                return
            self._remove_others()
            write_whole(document, text)
        except OSError as error:
            raise YardmasterError(f"Cannot write to {self.folder}: {error.strerror}.") from None

    def _text(self) -> str:
        return to_toml({one.name: one.config.tables() for one in self.trainings})

    def _remove_others(self) -> None:
        """Remove run folders that were begun with another configuration."""
        wanted = {one.name: to_toml(one.config.tables()) for one in self.trainings}
        place = self.folder / FOLDER
        for folder in sorted(place.iterdir()) if place.is_dir() else ():
            config = RunFolder(folder).config
            text = config.read_text(encoding="utf-8") if config.is_file() else None
            if wanted.get(folder.name) != text:
                shutil.rmtree(folder)


def status_of(folder: RunFolder) -> str:
    """Return how a training stands; empty if it was never begun."""
    return str(read_json(folder.about).get("status")) if folder.is_run() else ""


def trainings_of(
    variants: Mapping[str, Mapping[str, Any]], seeds: Sequence[int], layers: Sequence[Layer]
) -> Iterator[Training]:
    """Yield every variant from every seed, all of the first seed before the second.

    Args:
        variants: by name, tables of what differs from the common configuration.
        seeds: seeds of the trainings.
        layers: the common configuration, later ones over earlier ones.

    Raises:
        InvalidConfigError: if a configuration makes no sense.
    """
    for seed in seeds:
        for variant, tables in variants.items():
            own = [Layer(tables, variant), Layer({"train": {"seed": seed}}, "the study")]
            yield Training(variant, seed, config_from([*layers, *own]))
