"""The site's tables of a cluster document: what they become, and every mistake in them."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import InvalidConfigError
from yardmaster.model.cluster import Cluster
from yardmaster.model.cluster_document import ClusterDocument
from yardmaster.model.documents import validate
from yardmaster.model.site import Checkpoints, Failures, Outage, Power, Quota, Sharing, Site

NODES = """
[[nodes]]
count = 4
gpu_type = "V100"
gpus = 8
[[nodes]]
count = 2
gpu_type = "t4"
gpus = 4
"""
"""Six nodes, 40 GPUs; tables may follow, top-level keys must stand before."""


def read(text: str) -> Cluster:
    """Return the cluster a document describes."""
    return validate(ClusterDocument, tomllib.loads(text), "ours.toml").cluster("ours")


def mistakes(text: str) -> tuple[str, ...]:
    """Return the mistakes for which a document is refused."""
    with pytest.raises(InvalidConfigError) as caught:
        read(text)
    return caught.value.mistakes


def test_without_tables_a_site_has_no_rules():
    """Everything is off by default, and no node shares its GPUs."""
    cluster = read(NODES)
    assert cluster.site == Site()
    assert set(cluster.node_sharing.tolist()) == {Sharing.NONE}


def test_everything_given_reaches_the_model():
    """Each key of each table ends up in its place."""
    prices = [0.1 + hour / 100 for hour in range(24)]
    cluster = read(f"""
        quantum_s = 600
        splits_gangs = true
        equal_speeds = true
        reference_gpu = "tesla t4"
        {NODES}
        [[tenants]]
        name = "vision"
        guaranteed_gpus = 24
        limit_gpus = 32
        [[tenants]]
        name = "speech"
        guaranteed_gpus = 16
        [checkpoints]
        every_s = 3600
        save_s = 30
        restore_s = 60
        on_preemption = false
        [failures]
        retries = 3
        outages = [
            {{node = 5, down_h = 3, up_h = 4.5}},
            {{node = 0, down_s = 100, up_h = 1}},
            {{node = 5, down_s = 0, up_s = 10800}},
        ]
        [power]
        cap_kw = 12.5
        price_per_kwh = {prices}
        carbon_g_per_kwh = 380
        sleep_after_s = 900
    """)
    outages = (Outage(5, 0, 10800), Outage(0, 100, 3600), Outage(5, 10800, 16200))
    assert cluster.site == Site(
        quotas=(Quota("vision", 24, 32), Quota("speech", 16)),
        checkpoints=Checkpoints(3600, 30, 60, on_preemption=False),
        failures=Failures(outages=outages, retries=3),
        power=Power(12_500, tuple(prices), (380,), 900),
        quantum_s=600,
        splits_gangs=True,
        equal_speeds=True,
        reference_gpu="T4",
    )


def test_random_failures():
    """A mean time between failures takes an hour of repair unless told otherwise."""
    assert read(f"{NODES}[failures]\nmtbf_h = 500").site.failures == Failures(500, 1)
    with_both = f"{NODES}[failures]\nmtbf_h = 500\nmttr_h = 6\nretries = 0"
    assert read(with_both).site.failures == Failures(500, 6, retries=0)


def test_power_in_watts_and_free_saving():
    """The other spelling of the cap; prices may fall below zero; sleeping may be at once."""
    power = read(f"{NODES}[power]\ncap_w = 900\nprice_per_kwh = -0.1\nsleep_after_s = 0").site.power
    assert power == Power(900, (-0.1,), (), 0)


def test_saving_on_preemption_needs_no_period():
    """Without `every_s` nothing is saved from time to time, and saving may take any time."""
    site = read(f"{NODES}[checkpoints]\nsave_s = 90\nrestore_s = 30").site
    assert site.checkpoints == Checkpoints(math.inf, 90, 30)


@pytest.mark.parametrize("written", ["none", "mps", "mig"])
def test_sharing_belongs_to_a_group(written: str):
    """One group may share its GPUs and the next may not."""
    cluster = read(f'{NODES}sharing = "{written}"')
    assert cluster.node_sharing.tolist() == [Sharing.NONE] * 4 + [Sharing[written.upper()]] * 2


def test_references_are_found_by_any_name_also_among_own_types():
    """The site names the reference as its cluster does."""
    own = '[gpu_types.Slow-One]\nlike = "V100"\n[[nodes]]\ngpu_type = "slow one"\ngpus = 1'
    assert read(f'reference_gpu = "SLOW_ONE"\n{own}').site.reference_gpu == "Slow-One"


def test_a_pool_has_one_node_and_all_gpus():
    """Outages and guarantees are held against what the pool is."""
    pool = "pool = true\n[[nodes]]\ncount = 4\ngpu_type = 'T4'\ngpus = 8\nsharing = 'mps'\n"
    tenant = "[[tenants]]\nname = 'all'\nguaranteed_gpus = 32\n"
    assert read(pool + tenant).site.quotas == (Quota("all", 32),)
    assert read(pool).node_sharing.tolist() == [Sharing.MPS]
    (found,) = mistakes(f"{pool}[failures]\noutages = [{{node = 1, down_s = 0, up_s = 1}}]")
    assert found == "failures.outages[0].node: there is no node 1: the last one is 0"


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5))
def test_guarantees_add_up_to_at_most_the_cluster(guaranteed: list[int]):
    """A document is accepted exactly when its 40 GPUs cover every guarantee."""
    tenants = "".join(
        f"[[tenants]]\nname = 'team {number}'\nguaranteed_gpus = {gpus}\n"
        for number, gpus in enumerate(guaranteed)
    )
    if sum(guaranteed) <= 40:
        quotas = read(NODES + tenants).site.quotas
        assert [quota.guaranteed_gpus for quota in quotas] == guaranteed
    else:
        (found,) = mistakes(NODES + tenants)
        assert found.startswith(f"tenants: {sum(guaranteed)} GPUs are guaranteed")
        assert found.endswith("has only 40")


windows = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 10))


@given(st.lists(windows, min_size=1, max_size=5))
def test_outages_of_one_node_never_overlap(listed: list[tuple[int, int, int]]):
    """A document is accepted exactly when no node goes down while it is down, by the second."""
    text = ", ".join(
        f"{{node = {node}, down_s = {down}, up_s = {down + length}}}"
        for node, down, length in listed
    )
    away = [(node, at) for node, down, length in listed for at in range(down, down + length)]
    document = f"{NODES}[failures]\noutages = [{text}]"
    if len(set(away)) == len(away):
        outages = read(document).site.failures.outages
        assert sorted((o.node, o.down_s, o.up_s - o.down_s) for o in outages) == sorted(listed)
        assert [o.down_s for o in outages] == sorted(down for _, down, _ in listed)
    else:
        (found,) = mistakes(document)
        assert found.startswith("failures.outages: node ")
        assert "while it is already away" in found


TENANT = "[[tenants]]\nname = 'a'\nguaranteed_gpus = 8\n"
OUTAGE = "[[failures.outages]]\nnode = 0\n"


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (TENANT + TENANT, "tenants: two tenants are called 'a'"),
        (TENANT + "limit_gpus = 7", "tenants[0].limit_gpus: 7 is below guaranteed_gpus, 8"),
        (TENANT + "limit_gpus = 0", "tenants[0].limit_gpus: must be greater than or equal to 1"),
        ("[[tenants]]\nname = ''\nguaranteed_gpus = 1", "tenants[0].name: "),
        ("[[tenants]]\nname = 'a'", "tenants[0].guaranteed_gpus: is required"),
        ("[[tenants]]\nguaranteed_gpus = 1", "tenants[0].name: is required"),
        (TENANT + "limit = 9", "tenants[0].limit: unknown key. Did you mean 'limit_gpus'?"),
        ("[tenants]\na = 8", "tenants: must be a valid"),
        ("[checkpoints]\nevery_s = 60\nsave_s = 60", "save_s: 60 must be less than every_s, 60"),
        ("[checkpoints]\nevery_s = 0", "checkpoints.every_s: must be greater than 0"),
        ("[checkpoints]\nrestore_s = -1", "checkpoints.restore_s: must be greater than"),
        ("[checkpoints]\non_preemption = 1", "checkpoints.on_preemption: must be a valid boolean"),
        ("[failures]\nmtbf_h = inf", "failures.mtbf_h: must be a"),
        ("[failures]\nmttr_h = 3", "failures.mttr_h: means nothing without mtbf_h"),
        ("[failures]\nretries = -1", "failures.retries: must be greater than or equal to 0"),
        (f"[failures]\nmtbf_h = 9\n{OUTAGE}down_s = 0\nup_s = 1", "either outages or mtbf_h"),
        (f"{OUTAGE}down_s = 9\nup_s = 9", "outages[0].up_h: the node is up at 9 s, but goes down"),
        (f"{OUTAGE}down_h = 2\nup_s = 9", "but goes down at 7200 s"),
        (f"{OUTAGE}down_s = 1\ndown_h = 1\nup_h = 9", "down_h: give either down_s or down_h"),
        (f"{OUTAGE}down_s = 1", "failures.outages[0].up_h: give either up_s or up_h"),
        (f"{OUTAGE}up_s = 1", "failures.outages[0].down_h: give either down_s or down_h"),
        ("[[failures.outages]]\nnode = 6\ndown_s = 0\nup_s = 1", "no node 6: the last one is 5"),
        ("[[failures.outages]]\nnode = -1\ndown_s = 0\nup_s = 1", "outages[0].node: must be"),
        ("[power]\ncap_w = 9\ncap_kw = 9", "power.cap_kw: give either cap_w or cap_kw"),
        ("[power]\ncap_w = 0", "power.cap_w: must be greater than 0"),
        (
            "[power]\nprice_per_kwh = [1, 2, 3]",
            "price_per_kwh: must be a number or 24 numbers, got",
        ),
        ("[power]\nprice_per_kwh = 'cheap'", "must be a number or 24 numbers, got 'cheap'"),
        ("[power]\nprice_per_kwh = true", "must be a number or 24 numbers, got True"),
        ("[power]\nprice_per_kwh = nan", "power.price_per_kwh"),
        (f"[power]\nprice_per_kwh = {['x'] + [1] * 23}", "power.price_per_kwh[0]: must be a valid"),
        ("[power]\ncarbon_g_per_kwh = -1", "power.carbon_g_per_kwh"),
        ("[power]\nsleep_after_s = -1", "power.sleep_after_s: must be greater"),
        ("[powr]\ncap_w = 9", "powr: unknown key. Did you mean 'power'?"),
    ],
)
def test_each_mistake_in_a_table_is_named(tables: str, expected: str):
    """One mistake, one line with its place and what would be right."""
    (found,) = mistakes(NODES + tables)
    assert expected in found


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("quantum_s = -1", "quantum_s: must be greater than or equal to 0"),
        ("splits_gangs = 'yes'", "splits_gangs: must be a valid boolean, got 'yes'"),
        ("equal_speeds = 0", "equal_speeds: must be a valid boolean"),
        ("reference_gpu = 'V10'", "GPU type of this cluster 'V10'. Did you mean 'V100'?"),
        ("reference_gpu = 'A100'", "reference_gpu: Unknown GPU type of this cluster 'A100'."),
        ("reference_gpu = ''", "reference_gpu: Unknown GPU type"),
    ],
)
def test_each_mistake_in_a_key_is_named(keys: str, expected: str):
    """The keys outside tables are checked like those inside."""
    (found,) = mistakes(f"{keys}\n{NODES}")
    assert expected in found


def test_unknown_ways_of_sharing_are_refused():
    """A misspelt way of sharing is answered with the nearest."""
    (found,) = mistakes(f'{NODES}sharing = "mgi"')
    assert found.startswith("nodes[1].sharing: must be 'none', 'mps' or 'mig', got 'mgi'")
    assert "Did you mean 'mig'" in found


def test_all_mistakes_of_all_tables_come_at_once():
    """No table hides the mistakes of another, nor do those of the nodes."""
    found = mistakes("""
        quantum_s = "long"
        reference_gpu = "H100"
        [[nodes]]
        gpu_type = "V100"
        gpus = 8
        sharing = 1
        [[tenants]]
        name = "a"
        guaranteed_gpus = 9
        [checkpoints]
        every_s = 10
        save_s = 20
        [failures]
        mttr_h = 2
        [[failures.outages]]
        node = 1
        down_h = 2
        up_h = 1
        [power]
        cap_kw = 0
        carbon_g_per_kwh = []
    """)
    assert sorted(mistake.split(":")[0] for mistake in found) == [
        "checkpoints.save_s",
        "failures.mttr_h",
        "failures.outages[0].node",
        "failures.outages[0].up_h",
        "nodes[0].sharing",
        "power.cap_kw",
        "power.carbon_g_per_kwh",
        "quantum_s",
        "reference_gpu",
        "tenants",
    ]


@pytest.mark.parametrize("nodes", ["", "nodes = 3", "nodes = [3]", "[[nodes]]\ngpus = 'x'"])
def test_rules_are_not_held_against_nodes_that_cannot_be_read(nodes: str):
    """Without readable nodes only the nodes are complained about."""
    tables = "[[tenants]]\nname = 'a'\nguaranteed_gpus = 9\n[[failures.outages]]\nnode = 7\n"
    found = mistakes(f"reference_gpu = 'H100'\n{nodes}\n{tables}down_s = 0\nup_s = 1")
    assert {mistake[:5] for mistake in found} == {"nodes"}
