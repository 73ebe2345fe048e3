"""Questions leave run directories that say what was asked and reproduce themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.experiments.plan import EtaQuestion, Plan, WhatIfQuestion
from yardmaster.experiments.questions import changes_of, run_eta, run_whatif
from yardmaster.experiments.run_directory import (
    default_path,
    differences,
    new_run_directory,
    read_inputs,
)

WHATIF = Plan(
    command="whatif", workload="lognormal", cluster="2x V100:8", schedulers=("fifo+skip",), jobs=60,
    seeds=2, whatif=WhatIfQuestion(add=("1x V100:8",), scale_load=(1.5,), sweep="nodes=0..2"),
)  # fmt: skip
ETA = Plan(
    command="eta", workload="lognormal", cluster="1x V100:8", schedulers=("fifo+skip",), jobs=120,
    load=1.5, eta=EtaQuestion(simulations=3, calibrate=0),
)  # fmt: skip


def carry_out(plan: Plan, workloads, path: Path) -> None:
    with new_run_directory(path) as folder:
        if plan.command == "whatif":
            run_whatif(plan, workloads, folder)
        else:
            run_eta(plan, workloads, folder)


@pytest.mark.parametrize("plan", [WHATIF, ETA], ids=["whatif", "eta"])
def test_a_question_asked_again_has_the_same_answer(plan: Plan, tmp_path: Path):
    """The inputs of a run directory give the same plan, the same jobs and the same bytes."""
    workloads = plan.make_workloads(plan.make_cluster())
    carry_out(plan, workloads, tmp_path / "one")
    again, jobs = read_inputs(tmp_path / "one")
    assert again == plan
    assert [each.fingerprint() for each in jobs] == [each.fingerprint() for each in workloads]
    carry_out(again, jobs, tmp_path / "two")
    assert differences(tmp_path / "one", tmp_path / "two") == []
    assert json.loads((tmp_path / "one" / "summary.json").read_text())


def test_files_of_the_user_are_kept(tmp_path: Path):
    """Cluster and snapshot travel with the run under their own names, and the originals may go."""
    (tmp_path / "ours.toml").write_text('[[nodes]]\ngpu_type = "V100"\ngpus = 4\n')
    (tmp_path / "now.csv").write_text("id,submit_s,gpus,estimate_s,start_s\na,0,4,1000,0\n")
    plan = Plan(
        command="eta", workload="lognormal", cluster=str(tmp_path / "ours.toml"),
        schedulers=("fifo+skip",),
        eta=EtaQuestion(snapshot=str(tmp_path / "now.csv"), now_s=400.0, gpus=2, hours=1.0,
                        simulations=2),
    )  # fmt: skip
    carry_out(plan, [], tmp_path / "one")
    assert default_path(plan).name.startswith("eta-now-")
    (tmp_path / "ours.toml").unlink()
    (tmp_path / "now.csv").unlink()
    again, jobs = read_inputs(tmp_path / "one")
    assert jobs == []
    assert again.make_cluster().name == "ours"
    carry_out(again, jobs, tmp_path / "two")
    assert differences(tmp_path / "one", tmp_path / "two") == []


def test_every_change_is_read():
    """Each option gives its change, in the order of the table."""
    question = WhatIfQuestion(
        add=("1x A100:8",), remove=("1x V100",), nodes=("+2",), replace=("1x V100=1x H100:8",),
        scale_load=(1.2,),
    )  # fmt: skip
    names = [change.name for change in changes_of(question, [])]
    assert names == [
        "add 1x A100:8", "remove 1x V100", "+2 nodes", "replace 1x V100 by 1x H100:8", "load × 1.2",
    ]  # fmt: skip


def test_together_is_one_change(tmp_path: Path):
    """All changes at once make one row beside the cluster as it is."""
    question = WhatIfQuestion(add=("1x V100:8",), scale_load=(1.5,), together=True)
    plan = WHATIF.model_copy(update={"whatif": question, "seeds": 1})
    workloads = plan.make_workloads(plan.make_cluster())
    found = run_whatif(plan, workloads, _folder(tmp_path))
    assert [row.change for row in found.rows] == ["as it is", "add 1x V100:8; load × 1.5"]
    assert (found.rows[1].gpus, found.rows[1].load) == (24, 1.5)


def test_quotas_beyond_the_cluster_are_refused(tmp_path: Path):
    """Nobody can promise more GPUs than there are."""
    question = WhatIfQuestion(quota=("team-0=100",))
    plan = Plan(
        command="whatif", workload="venus-like", cluster="tenants-demo", schedulers=("fifo+skip",),
        jobs=60, whatif=question,
    )  # fmt: skip
    workloads = plan.make_workloads(plan.make_cluster())
    with pytest.raises(YardmasterError, match="196 GPUs in all"):
        run_whatif(plan, workloads, _folder(tmp_path))


def _folder(path: Path) -> Path:
    (path / "workloads").mkdir()
    return path
