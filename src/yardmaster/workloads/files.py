"""Reading files that users name, with errors they can act on."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.names import did_you_mean

GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: Path) -> bytes:
    """Return a file's content, unpacked if it is gzipped (whatever its name says).

    Raises:
        InvalidWorkloadError: if the file is not there or cannot be read.
        TraceFormatError: if it is a damaged gzip file.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise missing(path) from None
    except (OSError, ValueError) as error:
        raise InvalidWorkloadError(f"Cannot read {path}: {_reason(error)}.") from None
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise TraceFormatError(f"{path} is a damaged gzip file: {_reason(error)}.") from None


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Yield a file beside `path` to write to; it becomes `path` only if all goes well.

    Raises:
        InvalidWorkloadError: if `path` is there already and may not be replaced, or the file
            cannot be written.
    """
    refuse_to_replace(path, overwrite=overwrite)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise InvalidWorkloadError(f"Cannot write {path}: {_reason(error)}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def refuse_to_replace(path: Path, *, overwrite: bool) -> None:
    """Complain, before any long work, if the file to write cannot be or must not be written.

    Raises:
        InvalidWorkloadError: if `path` is there already and may not be replaced, or it is a folder.
    """
    if path.is_dir():
        raise InvalidWorkloadError(f"Cannot write {path}: it is a folder.")
    if path.exists() and not overwrite:
        raise InvalidWorkloadError(f"{path} is there already; --overwrite replaces it.")
    if not path.parent.is_dir():
        raise InvalidWorkloadError(f"Cannot write {path}: there is no folder {path.parent}.")


def missing(path: Path) -> InvalidWorkloadError:
    """Build the error for a file that is not there, naming files that are."""
    try:
        hint = did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
    except OSError:
        hint = f" There is no folder {path.parent} either."
    return InvalidWorkloadError(f"No such file: {path}.{hint}")


def stem(path: Path) -> str:
    """Return the file's name without folder and endings, for tables and reports."""
    name = path.name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
