"""Recipes as people write them: TOML files, one-line options, and back to TOML.

```toml
preset = "venus-like"            # optional: begin with this and change some parts
jobs = 5000
load = 0.9                       # or rate_per_h, or span_s
durations = "lognormal:median=600,sigma=1.7"

[arrivals]
process = "alternating"
busy = 3
quiet = 0.3
every_s = 300
```

A part is a table or one line; both say the same. A recipe with mistakes is refused with all of
them at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yardmaster.errors import InvalidConfigError, YardmasterError
from yardmaster.names import did_you_mean, unknown
from yardmaster.workloads.demands import Demands
from yardmaster.workloads.files import missing
from yardmaster.workloads.recipes.parameters import Part, parameters_of
from yardmaster.workloads.recipes.presets import PRESETS
from yardmaster.workloads.recipes.reading import Mistake, built, split_options, written
from yardmaster.workloads.recipes.recipe import PROCESSES, Recipe

ENDING = ".toml"
_PACES = ("load", "rate_per_h", "span_s")
_HOW_MANY = (*_PACES, "jobs", "until_s")
_OPTION_NAMES = {"rate_per_h": "rate"}
"""Keys that have another name on the command line."""


def is_recipe_file(source: str | Path) -> bool:
    """Whether a name is that of a recipe file."""
    return str(source).lower().endswith(ENDING)


def find_recipe(source: str | Path) -> Recipe:
    """Return the recipe that a preset (`mm`, `mm:elastic=0.3`) or the name of a file stands for.

    Raises:
        UnknownNameError: if there is no such preset or option.
        InvalidConfigError: with everything that is wrong in a file.
    """
    if is_recipe_file(source):
        return read_recipe(Path(source))
    name, _, options = str(source).partition(":")
    return PRESETS[name.strip()].recipe(options)


def read_recipe(path: Path, options: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe from a TOML file; `options` take the place of what the file says.

    Files that the recipe replays are looked for beside it.

    Raises:
        InvalidWorkloadError: if there is no such file.
        InvalidConfigError: with everything that is wrong in the file or the options.
    """
    from yardmaster.model.documents import read_toml

    if not path.exists():
        raise missing(path)
    data = read_toml(path)
    _look_beside(path.parent, data.get("arrivals"))
    return recipe_from({"name": path.stem} | data, str(path), options)


def recipe_from(
    data: Mapping[str, Any], where: str, options: Mapping[str, Any] | None = None
) -> Recipe:
    """Make a recipe of a document and the options that replace some of its keys.

    Args:
        data: what a TOML file holds.
        where: its name, for messages.
        options: key → value as written on the command line, where the keys have dashes before.

    Raises:
        InvalidConfigError: with every mistake found, each with its path.
    """
    mistakes: list[str] = []
    options = options or {}
    given = {key: data[key] for key in data if key not in _overridden(options, data)}
    given |= options
    base = _base(given.pop("preset", None), mistakes)
    changes: dict[str, Any] = {}
    for key, value in given.items():
        path = f"--{_OPTION_NAMES.get(key, key)}" if key in options else key
        found, wrong = _read(key, value, path)
        changes[key] = found
        mistakes += wrong
    if mistakes:
        raise InvalidConfigError(where, mistakes)
    known = {key: getattr(base, key) for key in _HOW_MANY}
    old: dict[str, Any] = dict.fromkeys(_overridden(changes, known))
    try:
        return replace(base, **(old | changes))
    except InvalidConfigError as error:
        raise InvalidConfigError(where, error.mistakes) from None
    except YardmasterError as error:
        raise InvalidConfigError(where, [str(error)]) from None


def document_of(recipe: Recipe) -> dict[str, Any]:
    """Return what a TOML file says that stands for a recipe."""
    parts = {key: _written_part(getattr(recipe, key)) for key in PROCESSES}
    demands = {"demands": written(recipe.demands)} if recipe.demands != Demands() else {}
    return written(recipe) | parts | demands


def to_toml(recipe: Recipe) -> str:
    """Return a recipe as the text of a TOML file."""
    import tomli_w

    text = tomli_w.dumps(document_of(recipe))
    return re.sub(r"\[\n((?: +[-+.\de]+,\n)+)\]", _in_one_line, text)


def _in_one_line(numbers: re.Match[str]) -> str:
    return f"[{', '.join(number.strip() for number in numbers[1].split(',') if number.strip())}]"


def _written_part(part: Part) -> dict[str, Any]:
    return {"process": part.process, **written(part)}


def _base(preset: Any, mistakes: list[str]) -> Recipe:
    """Return the recipe to begin with."""
    if preset is None:
        return Recipe()
    try:
        if not isinstance(preset, str):
            raise unknown("workload", str(preset), PRESETS)
        name, _, options = preset.partition(":")
        return PRESETS[name.strip()].recipe(options)
    except YardmasterError as error:
        mistakes.append(f"preset: {error}")
        return Recipe()


def _overridden(new: Mapping[str, Any], old: Mapping[str, Any]) -> set[str]:
    """Return what no longer counts when there is a new number of jobs or a new pace.

    A load leaves the rate that numbers the jobs of an hour, if there still is one.
    """
    gone: set[str] = set()
    if "jobs" in new or "span_s" in new:
        gone.add("until_s")
    if "until_s" in new:
        gone.add("jobs")
    if any(pace in new for pace in _PACES):
        counts = "until_s" not in gone and old.get("until_s") is not None
        gone.update(_PACES if "load" not in new or not counts else ("load", "span_s"))
    return gone - set(new)


def _read(key: str, value: Any, path: str) -> tuple[Any, list[str]]:
    """Read what stands under one key of a recipe."""
    scalars = parameters_of(Recipe)
    if key in scalars:
        try:
            return scalars[key].checked(key, value), []
        except YardmasterError as error:
            return None, [f"{path}: {str(error).removeprefix(key).strip()}"]
    if key in PROCESSES:
        return _read_process(key, value, path)
    if key == "demands":
        return _read_demands(value, path)
    allowed = ["preset", *scalars, *PROCESSES, "demands"]
    hint = did_you_mean(key, allowed)
    return None, [f"{path}: unknown key.{hint} Allowed: {', '.join(sorted(allowed))}"]


def _read_process(key: str, value: Any, path: str) -> tuple[Part | None, list[str]]:
    """Read a part: `name:key=value,…`, or a table with the key `process`."""
    in_one_line = isinstance(value, str)
    if in_one_line:
        name, _, options = value.partition(":")
        try:
            given: dict[str, Any] = split_options(options) if options.strip() else {}
        except YardmasterError as error:
            return None, [f"{path}: {error}"]
    elif isinstance(value, Mapping):
        given = {option: each for option, each in value.items() if option != "process"}
        if "process" not in value:
            known = ", ".join(sorted(PROCESSES[key]))
            return None, [f"{path}.process: is required.{_mistyped(given)} Known: {known}."]
        name = value["process"]
    else:
        return None, [f"{path}: must be a table or a text, got {value!r}"]
    try:
        process = PROCESSES[key][str(name).strip()]
    except YardmasterError as error:
        return None, [f"{path}{'' if in_one_line else '.process'}: {error}"]
    part, mistakes = built(process, given, in_one_line=in_one_line)
    return part, _at(path, mistakes)


def _mistyped(given: Mapping[str, Any]) -> str:
    """Point to a key that was perhaps meant to be `process`."""
    meant = [name for name in given if did_you_mean(name, ["process"])]
    return f" Did you mean it by {meant[0]!r}?" if meant else ""


def _read_demands(value: Any, path: str) -> tuple[Demands | None, list[str]]:
    in_one_line = isinstance(value, str)
    try:
        given = split_options(value) if in_one_line else value
    except YardmasterError as error:
        return None, [f"{path}: {error}"]
    if not isinstance(given, Mapping):
        return None, [f"{path}: must be a table or a text, got {value!r}"]
    demands, mistakes = built(Demands, given, in_one_line=in_one_line)
    return demands, _at(path, mistakes)


def _at(path: str, mistakes: list[Mistake]) -> list[str]:
    return [mistake.at(path) for mistake in mistakes]


def _look_beside(folder: Path, arrivals: Any) -> None:
    """Make the path of a replayed file one from here."""
    if isinstance(arrivals, dict) and isinstance(arrivals.get("file"), str):
        arrivals["file"] = str(folder / arrivals["file"])
