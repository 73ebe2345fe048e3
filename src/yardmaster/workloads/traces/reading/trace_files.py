"""The files of a trace, as they were downloaded: plain, gzipped, zipped, in tars or folders."""

from __future__ import annotations

import bz2
import csv
import fnmatch
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.files import missing

PEEK_BYTES = 1 << 16
NAMED = 8
"""How many files a message names before it counts the rest."""

_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ARCHIVES = (".zip", ".tar", ".tgz")
"""Endings of archives inside archives, after those of packed files (`.tar.gz`) are taken off."""

_Stream = IO[bytes] | io.BufferedIOBase
_OPENERS: dict[bytes, Callable[[Path], io.BufferedIOBase]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}


class TraceFile:
    """One file of a trace; what is packed is unpacked only if somebody wants its content.

    Attributes:
        name: what to call it: the path the user gave, with `!` before a member of an archive.
        given: the path the user gave, in which it was found.
    """

    def __init__(
        self,
        name: str,
        path: Path | None = None,
        *,
        given: Path | None = None,
        head: bytes | None = None,
        unpack: Callable[[], Path] | None = None,
    ) -> None:
        self.name = name
        self.given = given or path or Path(name)
        self._path, self._head, self._unpack = path, head, unpack

    @property
    def path(self) -> Path:
        """Where its plain content lies.

        Raises:
            TraceFormatError: if it is packed and damaged.
        """
        if self._path is None:
            if self._unpack is None:
                raise AssertionError(f"{self.name} has neither a path nor a way to unpack it")
            with _damage_named(self.name):
                self._path = self._unpack()
        return self._path

    @property
    def own_name(self) -> str:
        """Its own name without folders, such as `cluster_log.csv`, without `.gz`."""
        last = self.name.replace("!", "/").rpartition("/")[2]
        for packing in (".gz", ".bz2", ".xz"):
            last = last.removesuffix(packing)
        return last

    @property
    def short_name(self) -> str:
        """Its own name in lower case, to compare with a publisher's names."""
        return self.own_name.lower()

    @cached_property
    def head(self) -> bytes:
        """The first bytes, without a byte-order mark."""
        content = self._head
        if content is None:
            with self.path.open("rb") as stream:
                content = stream.read(PEEK_BYTES)
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise TraceFormatError(f"{self.name} is UTF-16 text; save it as UTF-8.")
        return content.removeprefix(b"\xef\xbb\xbf")

    @cached_property
    def lines(self) -> list[str]:
        """The first complete lines, whatever ends them."""
        text = self.head.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
        whole = text if len(self.head) < PEEK_BYTES else text.rpartition("\n")[0]
        return [line for line in whole.split("\n") if line.strip()]

    @cached_property
    def header_line(self) -> int:
        """Which line of the file (0 = first) names the columns, if one does.

        Comment lines (`#`) before it do not count, but a header that itself begins with `#` does.
        """
        text = self.head.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        number = 0
        while number + 1 < len(text) and (text[number].startswith("#") or not text[number].strip()):
            following = text[number + 1]
            cells = text[number].count(",")
            if cells and cells == following.count(",") and not following.startswith("#"):
                break  # `#job,arrival,…` above rows of as many cells
            number += 1
        return number

    def columns(self, separator: str = ",") -> tuple[str, ...]:
        """Return the names in the header line, lower case, without blanks and `#` around them."""
        text = self.head.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        line = [*text.split("\n"), ""][self.header_line]
        cells = next(csv.reader([line], delimiter=separator), [])
        return tuple(cell.strip().lstrip("#").strip().lower() for cell in cells)

    def has_columns(self, *names: str, separator: str = ",") -> bool:
        """Tell whether the header names all of these columns."""
        return set(names) <= set(self.columns(separator))


@contextmanager
def opened(paths: Sequence[Path], *, only: str | None = None) -> Iterator[tuple[TraceFile, ...]]:
    """Find the files the user named; what is unpacked lasts as long as the context.

    Folders and archives are searched; nothing outside a private temporary folder is written.

    Args:
        paths: files and folders.
        only: pattern such as `Venus`; members and files whose names do not hold it are left out.

    Raises:
        InvalidWorkloadError: if there is no such file, or none is left.
        TraceFormatError: if an archive is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="yardmaster-import-") as folder:
        files = [file for path in paths for file in _found(path, Path(folder))]
        chosen = tuple(file for file in files if _matches(file.name, only))
        if not chosen:
            what = f"no file matches {only!r}" if files else "there is no file"
            names = f" Found: {some(file.name for file in files)}." if files else ""
            raise InvalidWorkloadError(f"{', '.join(map(str, paths))}: {what}.{names}")
        yield chosen


def some(names: Iterable[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    listed = list(names)
    rest = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + rest


def _matches(name: str, only: str | None) -> bool:
    return only is None or fnmatch.fnmatchcase(name.lower(), f"*{only.lower()}*")


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Turn what goes wrong while unpacking into an error with the file's name."""
    try:
        yield
    except PermissionError as error:
        raise InvalidWorkloadError(f"Cannot read {name}: {error.strerror}.") from None
    except _DAMAGE as error:
        raise TraceFormatError(f"{name} is damaged and cannot be unpacked: {error}.") from None


def _found(path: Path, folder: Path) -> Iterator[TraceFile]:
    if not path.exists():
        raise missing(path)
    if path.is_file():
        yield from _files(path, path, folder)
        return
    if not path.is_dir():
        # What tells the packing would be missing from what is read afterwards.
        raise InvalidWorkloadError(
            f"{path} is a pipe or a device, which can be read only once: write it to a file first."
        )
    for inner in sorted(found for found in path.rglob("*") if found.is_file()):
        if not _is_ignored(str(inner.relative_to(path))):
            yield from _files(inner, path, folder)


def _files(path: Path, given: Path, folder: Path, inside: str = "") -> Iterator[TraceFile]:
    """Yield the file, or the members of the archive that it is.

    Args:
        path: where it lies.
        given: the path the user gave.
        folder: where to unpack.
        inside: what to call it if it lay inside an archive itself.
    """
    name = inside or str(path)
    with _damage_named(name):
        with path.open("rb") as stream:
            magic = stream.read(6)
        if magic.startswith(_ZIP):
            yield from _unfolded(name, _zip_members(path, name, given, folder), folder, inside)
        elif _is_tar(path):
            yield from _unfolded(name, _tar_members(path, name, given, folder), folder, inside)
        elif (opener := _opener(magic)) is not None:
            with opener(path) as packed:
                head = packed.read(PEEK_BYTES)
            unpack = partial(_unpacked, path, opener, folder)
            yield TraceFile(name, given=given, head=head, unpack=unpack)
        else:
            yield TraceFile(name, path, given=given)


def _unfolded(
    name: str, members: Iterator[TraceFile], folder: Path, inside: str
) -> Iterator[TraceFile]:
    """Yield the members of an archive; for archives among them, such as data.zip, theirs."""
    for member in members:
        if not member.short_name.endswith(_ARCHIVES):
            yield member
        elif inside:
            raise TraceFormatError(
                f"{member.name}: too many archives in each other; unpack {name}."
            )
        else:
            yield from _files(member.path, member.given, folder, member.name)


def _is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except _DAMAGE:
        return False  # packed and damaged: unpacking says so


def _opener(magic: bytes) -> Callable[[Path], io.BufferedIOBase] | None:
    return next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), None)


def _unpacked(path: Path, opener: Callable[[Path], io.BufferedIOBase], folder: Path) -> Path:
    with opener(path) as packed:
        return _spilled(packed, folder)


def _zip_members(path: Path, name: str, given: Path, folder: Path) -> Iterator[TraceFile]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir() or _is_ignored(member.filename):
                continue
            with archive.open(member) as content:
                head = content.read(PEEK_BYTES)
            unpack = partial(_unzipped, path, member.filename, folder)
            yield _member(f"{name}!{member.filename}", given, head, unpack)


def _unzipped(path: Path, name: str, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive, archive.open(name) as content:
        return _plain(_spilled(content, folder), folder)


def _tar_members(path: Path, name: str, given: Path, folder: Path) -> Iterator[TraceFile]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is None or _is_ignored(member.name):
                continue
            unpack = partial(_untarred, path, member.name, folder)
            yield _member(f"{name}!{member.name}", given, content.read(PEEK_BYTES), unpack)


def _untarred(path: Path, name: str, folder: Path) -> Path:
    with tarfile.open(path) as archive:
        content = archive.extractfile(name)
        if content is None:
            raise tarfile.ReadError(f"{name} is no file")
        return _plain(_spilled(content, folder), folder)


def _member(name: str, given: Path, head: bytes, unpack: Callable[[], Path]) -> TraceFile:
    """Return a member of an archive; one that is packed itself is looked at when unpacked."""
    is_packed = _opener(head) is not None
    return TraceFile(name, given=given, head=None if is_packed else head, unpack=unpack)


def _plain(spilled: Path, folder: Path) -> Path:
    """Unpack part-00000.csv.gz, which lay inside an archive."""
    with spilled.open("rb") as stream:
        opener = _opener(stream.read(6))
    return spilled if opener is None else _unpacked(spilled, opener, folder)


def _is_ignored(name: str) -> bool:
    """Tell whether a file is hidden, or what macOS adds to archives."""
    parts = name.split("/")
    return "__MACOSX" in parts or any(part.strip(".") and part[0] == "." for part in parts if part)


def _spilled(content: _Stream, folder: Path) -> Path:
    """Copy a stream into a new file of the temporary folder, whatever its name was."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as target:
        shutil.copyfileobj(content, target, 1 << 20)
    return Path(target.name)
