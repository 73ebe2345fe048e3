"""Running Slurm's programs: always under a time limit, in the C locale, with times in seconds.

Reading and writing are kept apart. What is written to Slurm is built by `changes.py` alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from yardmaster.errors import YardmasterError

SEPARATOR = "\x1f"
"""Between cells: what people write may contain `|` and commas, but no control sign."""

READERS = ("squeue", "sinfo", "sprio", "sacct", "sacctmgr", "sdiag")
"""Programs that are run to read; `scontrol` also reads, with `show` alone."""

_NO_SETTINGS = "Could not establish a configuration source"
"""What Slurm's programs say, after much about DNS, where there is no slurm.conf."""


class SlurmError(YardmasterError):
    """Slurm did not answer, or not as expected."""


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm's programs on this machine.

    Attributes:
        timeout_s: how long a program may take; commands hang for long without a controller.
        environment: variables to set, such as SLURM_CONF; those of this process otherwise.
    """

    timeout_s: float = 20.0
    environment: Mapping[str, str] = field(default_factory=dict)

    def read(self, *command: str) -> str:
        """Run a program that only reads and return what it printed.

        Raises:
            SlurmError: if it is missing, too slow, or fails.
        """
        reads = command[0] in READERS or command[:2] == ("scontrol", "show")
        if not reads:
            raise SlurmError(f"{command[0]} is not a program that only reads.")
        answer = self.run(command)
        if answer.returncode and _NO_SETTINGS in answer.stderr:
            raise SlurmError(
                f"{command[0]} finds no settings of a Slurm cluster on this machine: set SLURM_CONF"
                " to the path of its slurm.conf."
            )
        if answer.returncode:
            raise SlurmError(f"{command[0]} failed: {_tail(answer.stderr or answer.stdout)}")
        return answer.stdout

    def read_all(self, *commands: Sequence[str]) -> list[str]:
        """Run several programs that only read, at the same time."""
        with ThreadPoolExecutor(len(commands)) as pool:
            return list(pool.map(lambda command: self.read(*command), commands))

    def run(
        self, command: Sequence[str], text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, with text on its standard input.

        Raises:
            SlurmError: if it is missing or too slow.
        """
        variables = {**os.environ, **self.environment, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
        variables.pop("SLURM_BITSTR_LEN", None)
        if shutil.which(command[0], path=variables.get("PATH")) is None:
            raise SlurmError(
                f"{command[0]} is not installed here. On Debian: apt-get install slurm-client"
            )
        # Without an input of its own the program must not read ours.
        source = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
        try:
            return subprocess.run(  # noqa: S603 - Slurm's own programs
                list(command), env=variables, capture_output=True, text=True, check=False,
                errors="replace", timeout=self.timeout_s, **source,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SlurmError(
                f"{command[0]} did not answer within {self.timeout_s:g} s; is slurmctld running?"
            ) from None


def _tail(text: str) -> str:
    return " ".join(text.split())[-300:] or "it said nothing"
