"""Does a user's own trace format keep the promises that `import_trace` relies on?

    from yardmaster.testing import check_trace_format

    def test_my_format():
        check_trace_format(FORMAT, ["sample.csv"])

The sample is a small file in that format, as it was published. Rules about bad rows need a table of
lines (CSV and the like); JSON and packed files leave them untried.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.testing.verdicts import Conformance, NotTriedError, Rule, judged
from yardmaster.workloads.traces.formats import TraceFormat, imported
from yardmaster.workloads.traces.reading.draft import ImportedTrace
from yardmaster.workloads.traces.reading.options import ImportOptions
from yardmaster.workloads.traces.reading.trace_files import TraceFile, opened

FOREIGN: dict[str, tuple[str, bytes]] = {
    "": ("table.csv", b"colour,weight\nred,3\nblue,4\n"),
    "nothing": ("empty.csv", b""),
    "prose": ("notes.txt", b"Nothing in here is a job.\n"),
    "records": ("records.json", b'[{"colour": "red"}, {"colour": "blue"}]\n'),
    "bytes": ("picture.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00"),
    "helios": (
        "cluster_log.csv",
        b"job_id,user,vc,gpu_num,node_num,state,submit_time,start_time,end_time,queue\n",
    ),
    "swf": (
        "log.swf",
        b"; Version: 2.2\n; MaxProcs: 8\n1 0 5 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1\n",
    ),
    "slurm": ("sacct.txt", b"JobID|User|Submit|Start|End|State|ElapsedRaw|AllocTRES|ReqTRES\n"),
}
"""Files that are not the plug-in's, by the format they are in, if it is one that comes along."""

SEPARATORS = ",\t;|"
BAD_CELL = "?!"


def judge_trace_format(entry: TraceFormat, samples: Sequence[str | Path]) -> Conformance:
    """Try every rule on a sample.

    Args:
        entry: the format.
        samples: files of one small trace in it, as published.

    Raises:
        InvalidWorkloadError: if there is no sample, or no such file.
    """
    suite = _Suite(entry, [Path(sample) for sample in samples])
    return judged(
        "trace format",
        entry.name,
        [
            Rule("recognises its own file", suite.recognises, is_needed=True),
            Rule("does not recognise the files of others", suite.ignores_others),
            Rule("reads its file into valid jobs", suite.reads, is_needed=True),
            Rule("accounts for every row", suite.adds_up),
            Rule("reads the same twice", suite.repeats),
            Rule("refuses a bad row and names its line", suite.names_lines),
            Rule("skips and counts bad rows if it may", suite.skips),
            Rule("refuses a table without rows in words", suite.refuses_nothing),
        ],
    )


def check_trace_format(entry: TraceFormat, samples: Sequence[str | Path]) -> None:
    """Check a trace format on a sample; see `judge_trace_format`.

    Raises:
        ConformanceError: with the first rule that is broken, and why.
        InvalidWorkloadError: if there is no sample, or no such file.
    """
    judge_trace_format(entry, samples).insist()


class _Suite:
    """A format and its sample."""

    def __init__(self, entry: TraceFormat, samples: Sequence[Path]) -> None:
        if not samples:
            raise InvalidWorkloadError(
                "A trace format is checked on a sample: name a small file in it (--sample FILE)."
            )
        self.entry, self.samples = entry, samples
        with opened(samples):  # says now if a file is missing
            pass

    def recognises(self) -> str:
        with opened(self.samples) as files:
            known = [file.name for file in files if self.entry.recognises(file)]
            names = ", ".join(file.name for file in files)
        return "" if known else f"it says no to {names}"

    def ignores_others(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            for owner, (name, content) in FOREIGN.items():
                if owner == self.entry.name:
                    continue
                path = Path(folder) / name
                path.write_bytes(content)
                if self.entry.recognises(TraceFile(name, path)):
                    whose = f", which is {owner}'s" if owner else ""
                    return f"it takes {name} for its own{whose}"
        return ""

    def _read(
        self, paths: Iterable[Path] | None = None, *, skip_bad_rows: bool = False
    ) -> ImportedTrace:
        options = ImportOptions(skip_bad_rows=skip_bad_rows)
        with opened(list(paths or self.samples)) as files:
            return imported(self.entry, files, options, is_named=True)

    def reads(self) -> str:
        jobs = self._read().workload()  # checks every column
        return "" if len(jobs) else "no job is left"

    def adds_up(self) -> str:
        trace = self._read()
        account, jobs = trace.account, len(trace.workload())
        if not account.stages:
            return "the account has no stage: book rows with read_rows or ledger.stage"
        if account.jobs != jobs:
            return f"the account ends with {account.jobs} jobs, and {jobs} were read"
        return ""

    def repeats(self) -> str:
        first, second = (self._read() for _ in range(2))
        if not first.frame.equals(second.frame):
            return "other jobs the second time"
        if first.account.lines() != second.account.lines():
            return "another account the second time"
        return ""

    def names_lines(self) -> str:
        return self._on_damaged(self._refusal)

    def _refusal(self, path: Path, line: int) -> str:
        try:
            self._read([path])
        except TraceFormatError as error:
            found = re.search(rf"line {line}\b", str(error))
            return "" if found else f"the message does not name line {line}: {error}"
        return f"a row of {BAD_CELL!r} in every cell was read as if nothing were wrong"

    def skips(self) -> str:
        return self._on_damaged(self._skipping)

    def _skipping(self, path: Path, line: int) -> str:
        account = self._read([path], skip_bad_rows=True).account
        counted = [entry for stage in account.stages for entry in stage.dropped]
        if not any("cannot be read" in entry.reason for entry in counted):
            return f"line {line} is in no reason of the account: {'; '.join(account.lines())}"
        return ""

    def refuses_nothing(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            lines = self._lines()
            path = Path(folder) / self.samples[0].name
            path.write_text(lines[0] + "\n", "utf-8")
            try:
                self._read([path])
            except (TraceFormatError, InvalidWorkloadError):
                return ""
        return "a table without rows was read as if there were jobs"

    def _lines(self) -> list[str]:
        """Return the lines of the sample, if it is one plain table."""
        sample = self.samples[0]
        if len(self.samples) > 1 or not sample.is_file():
            raise NotTriedError("the sample is more than one file")
        try:
            lines = sample.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            raise NotTriedError("the sample is packed") from None
        if len(lines) < 3 or _separator(lines) == "" or lines[0].lstrip().startswith(("{", "[")):
            raise NotTriedError("the sample is no table of two rows or more with a header")
        return lines

    def _on_damaged(self, judge: Callable[[Path, int], str]) -> str:
        """Ask what becomes of the sample if one of its rows makes no sense."""
        lines = self._lines()
        number = len(lines) - 1
        separator = _separator(lines)
        cells = lines[number].count(separator) + 1
        lines[number] = separator.join([BAD_CELL] * cells)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.samples[0].name
            path.write_text("\n".join(lines) + "\n", "utf-8")
            return judge(path, number + 1)


def _separator(lines: Sequence[str]) -> str:
    """Return what stands between the cells of the header, "" if nothing does."""
    counts = {mark: lines[0].count(mark) for mark in SEPARATORS}
    most = max(counts, key=lambda mark: counts[mark])
    return most if counts[most] else ""
