"""The honest rival: a plain heap loop, as most simulators of batch queues are at heart.

A heap of completions, a heap of waiting jobs by key, and nodes; at one instant completions, then
arrivals, then one pass, exactly as in Yardmaster's core, so that start times must be equal. It
knows jobs that fit into one node and orders with fixed keys, and records start, end and node of
every job.

Two ways to find the tightest node: `heap loop` looks at every node, as plain loops do; `indexed
heap loop` keeps sorted lists of nodes by free GPUs, as careful ones do.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from math import inf

import numpy as np

from yardmaster.model.cluster import Cluster
from yardmaster.model.workload import FloatArray, Workload


class ScannedNodes:
    """Free GPUs of every node; the tightest that holds a job is found by looking at all."""

    def __init__(self, node_gpus: list[int]) -> None:
        self.free = list(node_gpus)

    def take(self, gpus: int) -> int:
        """Give `gpus` GPUs of the tightest node that has them; return the node, or −1."""
        best, least = -1, inf
        for node, free in enumerate(self.free):
            if gpus <= free < least:
                best, least = node, free
                if free == gpus:
                    break
        if best >= 0:
            self.free[best] -= gpus
        return best

    def give_back(self, node: int, gpus: int) -> None:
        """Free `gpus` GPUs of a node."""
        self.free[node] += gpus


class IndexedNodes:
    """Nodes by free GPUs; the tightest that holds a job is found by looking at few lists."""

    def __init__(self, node_gpus: list[int]) -> None:
        self.free = list(node_gpus)
        self.with_free: list[list[int]] = [[] for _ in range(max(node_gpus) + 1)]
        for node, gpus in enumerate(node_gpus):
            self.with_free[gpus].append(node)

    def take(self, gpus: int) -> int:
        """Give `gpus` GPUs of the tightest node that has them; return the node, or −1."""
        for free in range(gpus, len(self.with_free)):
            nodes = self.with_free[free]
            if nodes:
                node = nodes.pop(0)
                self.free[node] = free - gpus
                insort(self.with_free[free - gpus], node)
                return node
        return -1

    def give_back(self, node: int, gpus: int) -> None:
        """Free `gpus` GPUs of a node."""
        free = self.free[node]
        nodes = self.with_free[free]
        del nodes[bisect_left(nodes, node)]
        self.free[node] = free + gpus
        insort(self.with_free[free + gpus], node)


def heap_loop(workload: Workload, cluster: Cluster, rule: str) -> FloatArray:
    """Run the loop over nodes that are scanned; see `loop`."""
    return loop(workload, ScannedNodes(cluster.node_gpus.tolist()), rule)


def indexed_heap_loop(workload: Workload, cluster: Cluster, rule: str) -> FloatArray:
    """Run the loop over nodes that are indexed; see `loop`."""
    return loop(workload, IndexedNodes(cluster.node_gpus.tolist()), rule)


def loop(workload: Workload, nodes: ScannedNodes | IndexedNodes, rule: str) -> FloatArray:
    """Return the start second of every job, first in, first out.

    Args:
        workload: jobs that each fit into one node.
        nodes: all free; GPU types are ignored.
        rule: `strict` (nobody overtakes) or `skip` (jobs that do not fit are passed over).
    """
    submit, duration = workload.submit_s.tolist(), workload.duration_s.tolist()
    gpus, key = workload.gpus.tolist(), workload.submit_s.tolist()
    jobs = len(submit)
    start, end, place = [inf] * jobs, [inf] * jobs, [-1] * jobs
    running: list[tuple[float, int]] = []
    waiting: list[tuple[float, int]] = []
    arrived = 0
    while arrived < jobs or running:
        now = submit[arrived] if arrived < jobs else inf
        if running and running[0][0] < now:
            now = running[0][0]
        while running and running[0][0] == now:
            _, job = heappop(running)
            nodes.give_back(place[job], gpus[job])
        while arrived < jobs and submit[arrived] == now:
            heappush(waiting, (key[arrived], arrived))
            arrived += 1
        passed_over: list[tuple[float, int]] = []
        too_large = inf  # GPUs only become scarcer during a pass
        while waiting and too_large > 1:
            entry = heappop(waiting)
            job = entry[1]
            node = nodes.take(gpus[job]) if gpus[job] < too_large else -1
            if node >= 0:
                start[job], end[job], place[job] = now, now + duration[job], node
                heappush(running, (end[job], job))
                continue
            passed_over.append(entry)
            too_large = min(too_large, gpus[job])
            if rule == "strict":
                break
        if len(passed_over) == 1:
            heappush(waiting, passed_over[0])
        elif passed_over:
            # Popped in order and all before what is left: together they are a heap again.
            waiting = passed_over + waiting
    return np.array(start)


RIVALS = {"heap loop": heap_loop, "indexed heap loop": indexed_heap_loop}
"""Contenders for `yardmaster.experiments.benchmark.measure`."""
