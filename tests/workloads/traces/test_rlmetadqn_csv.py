"""RLMetaDQN's tables: relative deadlines, kinds in names, no order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yardmaster.errors import TraceFormatError
from yardmaster.workloads.traces.formats import import_trace

HEADER = "name,command,est_runtime_s,deadline_s,priority,submit_time"


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return path


def test_jobs_are_sorted_and_deadlines_absolute(tmp_path):
    """A deadline counts from the submission; the run time is no estimate; one GPU each."""
    path = table(
        tmp_path / "trace_1.csv",
        "LLM_TRAIN_7,sleep 40,2400,4800,1,3000",
        "EVAL_2,sleep 5,300,450.5,2,5",
        "VISION_TRAIN_03,sleep 10,700,2100,1,60",
    )
    found = import_trace([path])
    assert found.account.format == "rlmetadqn-csv"
    jobs = found.workload()
    assert jobs.id.tolist() == ["EVAL_2", "VISION_TRAIN_03", "LLM_TRAIN_7"]
    assert jobs.submit_s.tolist() == [5, 60, 3000]
    assert jobs.deadline_s.tolist() == [455.5, 2160, 7800]
    assert jobs.duration_s.tolist() == [300, 700, 2400]
    assert jobs.kind.values() == ["EVAL", "VISION_TRAIN", "LLM_TRAIN"]
    assert jobs.priority.tolist() == [2, 1, 1]
    assert (jobs.gpus == 1).all()
    assert np.isnan(jobs.estimate_s).all()
    assert any("no estimate" in remark for remark in found.account.remarks)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("LLM_FT_9f3a", "LLM_FT"), ("llm_infer-1", "LLM_INFER"), ("DATA_PREP", "DATA_PREP"),
        ("my-job-12", "my-job"), ("backup#4", "backup"), ("x", "x"),
    ],
)  # fmt: skip
def test_kinds_begin_the_names(tmp_path, name, kind):
    """Known kinds are recognised whatever follows; other names lose the number at their end."""
    path = table(tmp_path / "trace.csv", f"{name},sleep 1,60,90,0,5")
    assert import_trace([path]).workload().kind.values() == [kind]


def test_bad_rows_are_named(tmp_path):
    """A run time that is no number is refused with its line."""
    path = table(tmp_path / "trace.csv", "A_1,sleep 1,60,90,0,5", "A_2,sleep 1,soon,90,0,5")
    with pytest.raises(TraceFormatError, match="line 3: est_runtime_s is 'soon'"):
        import_trace([path])
