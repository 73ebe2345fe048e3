"""The document of a cluster: groups of nodes, GPU types of the user's own, rules of the site.

```toml
name = "ours"
description = "two generations, one of them tuned down"

[gpu_types.A100-300W]       # optional; travels with the cluster, unknown elsewhere
like = "A100"
busy_w = 300

[[nodes]]
count = 8
gpu_type = "A100-300W"
gpus = 8
nodes_per_rack = 4
cpus = 96                   # optional, like the next two
memory_gib = 1024
overhead_w = 1500           # what a node draws besides its GPUs

[[nodes]]
count = 4
gpu_type = "T4"
gpus = 4
sharing = "mps"             # fractional jobs share a GPU; or "mig", or "none"
```

Tenants, checkpoints, failures and power are described in `site_document`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from yardmaster.model.cluster import LARGEST_CLUSTER_GPUS, Cluster, NodeGroup, from_groups
from yardmaster.model.documents import Document
from yardmaster.model.gpus import GpuType, gpu_type, gpu_types, type_key
from yardmaster.model.site import Sharing
from yardmaster.model.site_document import NotNegative, Positive, SiteDocument
from yardmaster.names import unknown

_FIGURES = ("memory_gib", "fp32_tflops", "fp16_tflops", "memory_gb_s", "idle_w", "busy_w")


class GpuTypeDocument(Document):
    """`[gpu_types.NAME]`: a GPU type of the user's own, from scratch or `like` a known one."""

    memory_gib: Positive | None = None
    fp32_tflops: Positive | None = None
    fp16_tflops: Positive | None = None
    memory_gb_s: Positive | None = None
    idle_w: NotNegative | None = None
    busy_w: NotNegative | None = None
    year: int | None = None
    source: str | None = None
    like: str | None = Field(None, validate_default=True)
    """Type of the catalogue that gives what is not written here."""

    @field_validator("like")
    @classmethod
    def _is_known_or_not_needed(cls, name: str | None, info: ValidationInfo) -> str | None:
        missing = [key for key in _FIGURES if key in info.data and info.data[key] is None]
        if name is None and missing:
            raise ValueError(f"is required, or else {', '.join(missing)}")
        return name if name is None else _known(name)

    def gpu_type(self, name: str) -> GpuType:
        """Return the type, under the name its document gives it."""
        given = self.model_dump(exclude={"like"}, exclude_none=True)
        if self.like is None:
            return GpuType(name=name, **given)
        return replace(gpu_type(self.like), name=name, **given)


class NodesDocument(Document):
    """`[[nodes]]`: a group of equal nodes."""

    count: int = Field(1, ge=1, le=LARGEST_CLUSTER_GPUS)
    gpu_type: str
    gpus: int = Field(ge=1, le=LARGEST_CLUSTER_GPUS)
    nodes_per_rack: int = Field(0, ge=0, le=LARGEST_CLUSTER_GPUS)
    """0 puts the whole group into one rack."""
    cpus: Positive | None = None
    memory_gib: Positive | None = None
    overhead_w: NotNegative = 0.0
    sharing: Literal["none", "mps", "mig"] = "none"

    @field_validator("gpu_type")
    @classmethod
    def _is_known(cls, name: str, info: ValidationInfo) -> str:
        own = (info.context or {}).get("document", {}).get("gpu_types", {})
        own_names = list(own) if isinstance(own, dict) else []
        return _known(name, own_names)

    def group(self, kind: GpuType, *, is_pool: bool) -> NodeGroup:
        """Return the group; in a pool its nodes melt into one."""
        times = self.count if is_pool else 1
        return NodeGroup(
            count=self.count // times,
            gpu_type=kind,
            gpus=self.gpus * times,
            nodes_per_rack=self.nodes_per_rack,
            cpus=math.nan if self.cpus is None else self.cpus * times,
            memory_gib=math.nan if self.memory_gib is None else self.memory_gib * times,
            overhead_w=self.overhead_w * times,
            sharing=Sharing[self.sharing.upper()],
        )


class ClusterDocument(SiteDocument):
    """A cluster: groups of nodes, the GPU types it defines for itself, and its owner's rules."""

    name: str = ""
    description: str = ""
    source: str = ""
    gpu_types: dict[str, GpuTypeDocument] = Field(default_factory=dict)
    nodes: tuple[NodesDocument, ...]
    pool: bool = False
    """Whether the GPUs of the one group are interchangeable, without node borders."""

    @field_validator("gpu_types")
    @classmethod
    def _are_distinct(cls, own: dict[str, GpuTypeDocument]) -> dict[str, GpuTypeDocument]:
        names: dict[str, str] = {}
        for name in own:
            if not type_key(name):
                raise ValueError(f"{name!r} is not a name: it has no letter or digit")
            other = names.setdefault(type_key(name), name)
            if other != name:
                raise ValueError(f"{other!r} and {name!r} name the same GPU type")
        return own

    @field_validator("nodes")
    @classmethod
    def _are_some(cls, nodes: tuple[NodesDocument, ...]) -> tuple[NodesDocument, ...]:
        if not nodes:
            raise ValueError("a cluster needs at least one [[nodes]] group")
        return nodes

    @field_validator("pool")
    @classmethod
    def _has_one_group(cls, pool: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 pydantic's
        if pool and len(info.data.get("nodes", [None])) != 1:
            raise ValueError("a pool has exactly one [[nodes]] group")
        return pool

    def cluster(self, name: str) -> Cluster:
        """Build the cluster; `name` is used where the document gives none."""
        own = {type_key(key): kind.gpu_type(key) for key, kind in self.gpu_types.items()}
        groups = [
            nodes.group(
                own.get(type_key(nodes.gpu_type)) or gpu_type(nodes.gpu_type), is_pool=self.pool
            )
            for nodes in self.nodes
        ]
        return from_groups(
            groups,
            name=self.name or name,
            is_pool=self.pool,
            site=self.site([group.gpu_type for group in groups]),
        )


def _known(name: str, own_names: Sequence[str] = ()) -> str:
    """Return the name of a GPU type if the document or the catalogue has it."""
    names = [*own_names, *(kind.name for kind in gpu_types())]
    if type_key(name) not in {type_key(other) for other in names}:
        raise ValueError(str(unknown("GPU type", name, names)))
    return name
