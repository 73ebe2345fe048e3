"""Clusters by name, by file, or in one line.

Named clusters are the published ones that traces come from, and those other simulators used; each
is a document in `data/clusters/`, in the same format as a user's own.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from yardmaster.errors import InvalidClusterError, UnknownNameError
from yardmaster.model.cluster import Cluster
from yardmaster.names import unknown

NOTATION = "a name, a .toml file, '8x A100:8, 4x T4:4' or 'pool:512'"
"""How a cluster may be written, for help texts and messages."""


def cluster_names() -> tuple[str, ...]:
    """Return the names of the catalogue, sorted."""
    return tuple(sorted(_documents()))


def cluster_descriptions() -> dict[str, str]:
    """Return one line about each cluster of the catalogue, by name."""
    return {
        name: tomllib.loads(_documents()[name].read_text("utf-8"))["description"]
        for name in cluster_names()
    }


def load_cluster(cluster: str | Path) -> Cluster:
    """Return a cluster given by name, by TOML file, or in short notation.

    Short notation is groups of `NODESx TYPE:GPUS` joined by commas or plus signs, or `pool:GPUS`
    (also `pool:TYPE:GPUS`) for interchangeable GPUs without node borders.

    Raises:
        UnknownNameError: if no cluster or GPU type has the name.
        InvalidConfigError: if the file cannot be read or has mistakes.
        InvalidClusterError: if the notation cannot be read.
    """
    if isinstance(cluster, Path) or _looks_like_a_path(cluster):
        return _read(Path(cluster), where=str(cluster))
    name = cluster.strip()
    document = _documents().get(name.casefold())
    if document is not None:
        return _read(document, where=f"cluster {name!r}")
    if re.match(r"pool\s*:", name, re.IGNORECASE):
        return _pool(name)
    if re.search(r"[:,+]|^\d+\s*[xX×]", name):
        return Cluster.of(*(group.strip() for group in re.split(r"[,+]", name)))
    raise UnknownNameError(f"{unknown('cluster', name, _documents())} Or write {NOTATION}.")


def _looks_like_a_path(text: str) -> bool:
    return text.endswith(".toml") or "/" in text or "\\" in text


@cache
def _documents() -> dict[str, Traversable]:
    folder = resources.files("yardmaster.model").joinpath("data/clusters")
    files = [file for file in folder.iterdir() if file.name.endswith(".toml")]
    return {file.name.removesuffix(".toml"): file for file in files}


def _read(file: Path | Traversable, *, where: str) -> Cluster:
    # Pydantic takes a quarter of a second to import; short notation does without.
    from yardmaster.model.cluster_document import ClusterDocument
    from yardmaster.model.documents import read_toml, validate

    document = validate(ClusterDocument, read_toml(file), where)
    return document.cluster(file.name.removesuffix(".toml"))


def _pool(text: str) -> Cluster:
    match = re.fullmatch(r"pool\s*:\s*(?:([\w.\-]+)\s*:\s*)?(\d{1,9})", text, re.IGNORECASE)
    if not match:
        raise InvalidClusterError(
            f"Cannot read pool {text!r}: write 'pool:GPUS' or 'pool:TYPE:GPUS', such as 'pool:512'."
        )
    type_name, gpus = match.groups()
    return Cluster.pool(int(gpus), type_name) if type_name else Cluster.pool(int(gpus))
