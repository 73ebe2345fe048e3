"""What users' files hold, as digests: the same wherever a file lies, others once it is changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from yardmaster.errors import YardmasterError
from yardmaster.workloads.recipes.arrivals import Replayed
from yardmaster.workloads.recipes.document import find_recipe, is_recipe_file


def digest_of(source: str, leans_on: str | None = None) -> str | None:
    """Return the digest of a file's content, None for what is no file.

    A folder counts with all files in it.

    Args:
        source: the file.
        leans_on: another that counts with it: the arrivals that a recipe replays.

    Raises:
        YardmasterError: if a file cannot be read.
    """
    path = Path(source).expanduser()
    try:
        if path.is_dir():
            return _digest_of_folder(path)
        if not path.is_file():
            return None
        digest = hashlib.sha256(path.read_bytes())
        if leans_on is not None:
            digest.update(Path(leans_on).read_bytes())
        return digest.hexdigest()
    except OSError as error:
        raise YardmasterError(f"Cannot read {error.filename}: {error.strerror}.") from None


def _digest_of_folder(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest_of_parts(
        (file.relative_to(folder).as_posix(), file.read_bytes()) for file in files
    )


def digest_of_parts(parts: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of contents with their names, in the order they come in."""
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def replayed_by(source: str) -> str | None:
    """Return the file of arrivals that a recipe leans on; None if it does not, or is no recipe."""
    arrivals = find_recipe(source).arrivals if is_recipe_file(source) else None
    return arrivals.file if isinstance(arrivals, Replayed) else None
