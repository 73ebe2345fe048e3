"""The GPUs of this node, cut into slots, and who holds which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.model.cluster import Cluster, NodeGroup, from_groups
from yardmaster.model.gpus import GpuType, gpu_type

PRETENDED = "pretended"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, real or pretended."""

    index: int
    uuid: str
    """As NVML tells it; empty for a pretended one."""
    name: str = PRETENDED

    @property
    def is_real(self) -> bool:
        """Whether there is such a GPU."""
        return bool(self.uuid)

    def record(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def pretended(count: int) -> tuple[Device, ...]:
    """Return so many GPUs that are not there: jobs count against them and see none.

    Raises:
        YardmasterError: if that is no number of GPUs.
    """
    if not 1 <= count <= 4096:
        raise YardmasterError(f"--gpus must be between 1 and 4096, got {count}.")
    return tuple(Device(index, "") for index in range(count))


class Slots:
    """The node's slots: each a GPU, or an equal part of one."""

    def __init__(self, devices: Sequence[Device], slots_per_gpu: int = 1) -> None:
        """Cut the devices into slots.

        Raises:
            YardmasterError: if there are no devices, or the parts make no sense.
        """
        if not devices:
            raise YardmasterError(
                "There is no GPU here; --gpus N lets jobs run on N slots that stand for GPUs."
            )
        if not 1 <= slots_per_gpu <= 64:
            raise YardmasterError(f"--slots-per-gpu must be between 1 and 64, got {slots_per_gpu}.")
        self.devices = tuple(devices)
        self.per_gpu = slots_per_gpu
        self._holder: list[str | None] = [None] * (len(self.devices) * slots_per_gpu)

    def __len__(self) -> int:
        return len(self._holder)

    @property
    def free(self) -> int:
        """How many slots nobody holds."""
        return self._holder.count(None)

    def device_of(self, slot: int) -> Device:
        """Return the GPU that a slot is part of."""
        return self.devices[slot // self.per_gpu]

    def choose(self, count: int) -> tuple[int, ...]:
        """Return free slots for a job: on as many GPUs as it asks slots for, the emptiest first.

        Raises:
            YardmasterError: if there are not so many.
        """
        if count > self.free:
            raise YardmasterError(f"{count} slots are asked for, {self.free} are free.")
        used = [0] * len(self.devices)
        for slot, holder in enumerate(self._holder):
            used[slot // self.per_gpu] += holder is not None
        chosen: list[int] = []
        for _ in range(count):
            free = (
                slot
                for slot, holder in enumerate(self._holder)
                if holder is None and slot not in chosen
            )
            best = min(free, key=lambda slot: (used[slot // self.per_gpu], slot))
            used[best // self.per_gpu] += 1
            chosen.append(best)
        return tuple(sorted(chosen))

    def hold(self, slots: Iterable[int], job: str) -> None:
        """Give slots to a job.

        Raises:
            YardmasterError: if somebody else holds one, or there is no such slot.
        """
        for slot in slots:
            if not 0 <= slot < len(self._holder) or self._holder[slot] not in {None, job}:
                raise YardmasterError(f"Slot {slot} is not free for job {job}.")
            self._holder[slot] = job

    def release(self, job: str) -> None:
        """Take back all that a job holds."""
        self._holder = [None if holder == job else holder for holder in self._holder]

    def environment(self, slots: Sequence[int]) -> dict[str, str]:
        """Return what tells a job its own GPUs: by UUID, never by a number that shifts."""
        mine = dict.fromkeys(self.device_of(slot) for slot in slots)
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(one.uuid for one in mine if one.is_real),
            "YARDMASTER_SLOTS": ",".join(map(str, slots)),
        }

    def cluster(self, host: str) -> Cluster:
        """Return the node as the simulator knows it: every slot counts as a GPU."""
        group = NodeGroup(count=1, gpu_type=type_named(self.devices[0].name), gpus=len(self))
        return from_groups([group], name=host)


def type_named(name: str) -> GpuType:
    """Return the catalogue's type of a card as its driver names it, else one like no other."""
    words = name.replace("NVIDIA", " ").replace("Tesla", " ").split()
    for candidate in (name, *words, *(word.partition("-")[0] for word in words)):
        try:
            return gpu_type(candidate)
        except UnknownNameError:
            continue
    return GpuType(name or "GPU", 0.0, 1.0, 1.0, 1.0, 0.0, 1.0)
