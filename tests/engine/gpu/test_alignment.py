"""Tables of different simulations begin at the same places, and hold what they held."""

from __future__ import annotations

import numpy as np
import pytest

from yardmaster.engine import state as at
from yardmaster.engine.gpu.alignment import aligned, common
from yardmaster.engine.picking.sight import Sight
from yardmaster.model.cluster import Cluster
from yardmaster.model.site import Failures, Outage, Site
from yardmaster.model.workload import Workload
from yardmaster.schedulers.picking import prepare

TABLES = {"ints": range(at.JOB_SHAPE, at.SUBMIT), "reals": range(at.SUBMIT, at.HEADER)}
FIRST = {"ints": at.HEADER, "reals": at.REALS_HEADER}
FAILING = Site(failures=Failures(outages=(Outage(0, 5.0, 9.0),)))
SETS = {
    "sizes": [Cluster.of("2x V100:4"), Cluster.of("5x V100:8"), Cluster.pool(3)],
    "real": [Cluster.of("1x A100:4", "2x V100:2"), Cluster.of("3x V100:4").under(FAILING)],
    "mixed": [Cluster.of("2x V100:4"), Cluster.of("1x A100:4", "2x V100:2")],
}


def simulations(name: str) -> list:
    """Lay out a few jobs, more on every cluster of a set."""
    laid_out = []
    for extra, cluster in enumerate(SETS[name]):
        jobs = 6 + 3 * extra
        workload = Workload.of(
            submit_s=np.arange(jobs),
            duration_s=np.arange(1, jobs + 1),
            gpus=1 + np.arange(jobs) % 3,
        )
        laid_out.append(prepare(workload, cluster, Sight(window=4)).simulation)
    return laid_out


@pytest.mark.parametrize("part", ["ints", "reals"])
@pytest.mark.parametrize("name", list(SETS))
def test_every_table_holds_what_it_held(name: str, part: str):
    """Read through the new header, each table is the old one; so is the header's beginning."""
    before = simulations(name)
    ints, reals = aligned(before)
    moved = {"ints": ints, "reals": reals}[part]
    for number, simulation in enumerate(before):
        old, new = simulation.ints, ints[number]
        row, first = getattr(simulation, part), FIRST[part]
        np.testing.assert_array_equal(new[: at.JOB_SHAPE], old[: at.JOB_SHAPE])
        if part == "reals":
            np.testing.assert_array_equal(moved[number, :first], row[:first])
        begins = sorted({int(old[table]) for table in TABLES[part]} | {len(row)})
        for table in TABLES[part]:
            begin = int(old[table])
            if begin < first:  # there is no such table
                assert new[table] == begin
                continue
            length = next((other for other in begins if other > begin), begin) - begin
            found = moved[number, new[table] : new[table] + length]
            np.testing.assert_array_equal(found, row[begin : begin + length])


def test_tables_begin_at_the_same_places():
    """In simulations with the same tables, every table's place is common to all."""
    before = simulations("sizes")
    ints, _ = aligned(before)
    there = [(row.ints[at.JOB_SHAPE : at.HEADER] >= at.REALS_HEADER) for row in before]
    same = np.logical_and.reduce(there)
    assert same.sum() > 20
    places = ints[:, at.JOB_SHAPE : at.HEADER][:, same]
    np.testing.assert_array_equal(places, np.broadcast_to(places[0], places.shape))


def test_one_table_under_several_names_stays_one():
    """Names that meant the same table do so afterwards, and others do not."""
    before = simulations("real")
    ints, _ = aligned(before)
    for number, simulation in enumerate(before):
        for part, tables in TABLES.items():
            names = [name for name in tables if simulation.ints[name] >= FIRST[part]]
            old = simulation.ints[names]
            new = ints[number, names]
            np.testing.assert_array_equal(old[:, None] == old, new[:, None] == new)


def test_what_is_common_is_what_all_rows_share():
    """Settings and places that are the same everywhere, and none that the core writes."""
    ints, _ = aligned(simulations("sizes"))
    found = common(ints)
    for place in range(at.HEADER):
        is_same = len(set(ints[:, place].tolist())) == 1
        assert (place in found) == (is_same and place >= at.ORDER)
    assert all(value == ints[-1, place] for place, value in found.items())
    assert at.JOBS not in found
    assert at.GPUS not in found
