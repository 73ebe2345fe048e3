"""The hardest rival: plain Python tuned for nothing but first in, first out.

One loop over arrivals and a heap of completions. It follows
the rules of Yardmaster's core, so that its start times must be equal: at one instant completions,
then arrivals, then one pass; a job goes to the node with the fewest free GPUs that holds it, and
of those to the lowest number. It knows jobs that fit into one node, and nothing else: no gangs
over nodes, no GPU types, no other order, no record of ends, nodes or GPUs.

What makes it quick for plain Python: nodes are bits of whole numbers, one number per count of free
GPUs, so that the best node is found without a scan; nothing waiting is tried again before a
completion frees something. The placing of a job is written out where it is needed, because a call
would cost as much as the placing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload


def tuned_loop(workload: Workload, cluster: Cluster, rule: str) -> FloatArray:
    """Return the start second of every job under first in, first out.

    Args:
        workload: jobs that each fit into one node.
        cluster: nodes; GPU types are ignored.
        rule: `strict` (nobody overtakes) or `skip` (jobs that do not fit are passed over).
    """
    loop = {"strict": strict_loop, "skip": skip_loop}[rule]
    starts = loop(
        workload.submit_s.tolist(),
        workload.duration_s.tolist(),
        workload.gpus.tolist(),
        cluster.node_gpus.tolist(),
    )
    return np.array(starts)


def free_nodes(node_gpus: Sequence[int]) -> list[int]:
    """Return one bit set of nodes per count of free GPUs, and an end mark behind the largest."""
    nodes_with = [0] * (max(node_gpus) + 2)
    for node, gpus in enumerate(node_gpus):
        nodes_with[gpus] |= 1 << node
    nodes_with[-1] = -1
    return nodes_with


def strict_loop(
    submit: list[float], duration: list[float], gpus: list[int], node_gpus: list[int]
) -> list[float]:
    """First in, first out; nobody starts before the first in order."""
    nodes_with = free_nodes(node_gpus)
    most = len(nodes_with) - 2
    free = {1 << node: count for node, count in enumerate(node_gpus)}
    running: list[tuple[float, int, int]] = []  # end, GPUs, node's bit
    starts = [0.0] * len(submit)
    submit.append(inf)
    head, arrived, total = 0, 0, len(starts)
    while head < total:
        # While somebody waits, only a completion changes anything; while nobody does, an arrival.
        now = running[0][0] if head < arrived else submit[head]
        while running and running[0][0] <= now:
            _, size, node = heappop(running)
            before = free[node]
            after = free[node] = before + size
            nodes_with[before] ^= node
            nodes_with[after] |= node
        while submit[arrived] <= now:
            arrived += 1
        while head < arrived:
            size = level = gpus[head]
            while not nodes_with[level]:
                level += 1
            if level > most:
                break
            node = nodes_with[level] & -nodes_with[level]
            nodes_with[level] ^= node
            left = free[node] = level - size
            nodes_with[left] |= node
            starts[head] = now
            heappush(running, (now + duration[head], size, node))
            head += 1
    return starts


def skip_loop(
    submit: list[float], duration: list[float], gpus: list[int], node_gpus: list[int]
) -> list[float]:
    """First in, first out, passing over jobs that do not fit: a list in order, scanned."""
    nodes_with = free_nodes(node_gpus)
    most = len(nodes_with) - 2
    free = {1 << node: count for node, count in enumerate(node_gpus)}
    running: list[tuple[float, int, int]] = []  # end, GPUs, node's bit
    waiting: list[int] = []
    waiting_gpus: list[int] = []  # beside the jobs: scanning small numbers is quickest
    starts = [0.0] * len(submit)
    submit.append(inf)
    arrived, total = 0, len(starts)
    while arrived < total or waiting:
        now = submit[arrived]
        if waiting and running[0][0] < now:
            now = running[0][0]
        was_freed = False
        while running and running[0][0] <= now:
            _, size, node = heappop(running)
            before = free[node]
            after = free[node] = before + size
            nodes_with[before] ^= node
            nodes_with[after] |= node
            was_freed = True
        if was_freed and waiting:
            started = []
            room = most  # lowered to the most free GPUs on one node: larger jobs cannot start
            while not nodes_with[room]:
                room -= 1
            for place, size in enumerate(waiting_gpus):
                if size <= room:
                    level = size
                    while not nodes_with[level]:
                        level += 1
                    node = nodes_with[level] & -nodes_with[level]
                    nodes_with[level] ^= node
                    left = free[node] = level - size
                    nodes_with[left] |= node
                    job = waiting[place]
                    starts[job] = now
                    heappush(running, (now + duration[job], size, node))
                    started.append(place)
                    while not nodes_with[room]:
                        room -= 1
                    if not room:
                        break
            for place in reversed(started):
                del waiting[place], waiting_gpus[place]
        while submit[arrived] <= now:
            size = level = gpus[arrived]
            while not nodes_with[level]:
                level += 1
            if level > most:
                waiting.append(arrived)
                waiting_gpus.append(size)
            else:
                node = nodes_with[level] & -nodes_with[level]
                nodes_with[level] ^= node
                left = free[node] = level - size
                nodes_with[left] |= node
                starts[arrived] = now
                heappush(running, (now + duration[arrived], size, node))
            arrived += 1
    return starts


RIVALS = {"tuned fifo loop": tuned_loop}
"""Contenders for `yardmaster.experiments.benchmark.measure`."""
