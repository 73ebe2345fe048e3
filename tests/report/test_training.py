"""Training curves as pictures, trials as tables."""

from __future__ import annotations

from pathlib import Path

from yardmaster.experiments.training.folder import RunFolder, write_json, write_whole
from yardmaster.experiments.training.tuning import Trial, TuneResult
from yardmaster.report.renderers import to_dict, to_terminal
from yardmaster.report.training import trials_table, write_picture

CURVE = """\
steps,updates,seconds,episode_return,val_jct_s,val_returns,jct_s_of_fifo,jct_s_of_sjf+easy
0,0,0.0,,120.0,-4,100.0,80.0
1000,4,1.0,-5.0,,-3,100.0,80.0
2000,8,2.0,-4.0,79.0,-2,100.0,80.0
"""


def picture_of(tmp_path: Path, curve: str) -> bytes:
    folder = RunFolder(tmp_path)
    write_whole(folder.curve, curve)
    write_json(folder.about, {"metric": "jct_s"})
    assert write_picture(tmp_path) == folder.picture
    return folder.picture.read_bytes()


def test_the_curve_is_drawn(tmp_path: Path):
    """A picture is written; the same curve gives the same bytes, another curve others."""
    picture = picture_of(tmp_path, CURVE)
    assert picture.startswith(b"\x89PNG")
    assert picture_of(tmp_path, CURVE) == picture
    assert picture_of(tmp_path, CURVE.replace("79.0", "70.0")) != picture


def test_a_curve_without_evaluations_is_drawn(tmp_path: Path):
    """A run that was stopped at once has an empty picture, not an error."""
    assert picture_of(tmp_path, CURVE.partition("\n")[0] + "\n").startswith(b"\x89PNG")


def result(metric: str) -> TuneResult:
    trials = (
        Trial(0, "finished", 3.0, 1000, 2.0, {"clip": 0.123456, "network.hidden": "8x8"}),
        Trial(1, "failed", None, 0, 0.0, {"clip": 0.2, "network.hidden": "8"}),
        Trial(2, "finished", 1.0, 1000, 2.0, {"clip": 0.3, "network.hidden": "8"}),
        Trial(3, "pruned", 0.5, 500, 1.0, {"clip": 0.1, "network.hidden": "8"}),
    )
    return TuneResult(Path("runs/x"), metric, trials, trials[2], is_complete=True)


def test_trials_are_ranked():
    """The best score comes first, low or high as the metric wants; no score comes last."""
    for metric, order in (("jct_s", [3, 2, 0, 1]), ("returns", [0, 2, 3, 1])):
        table = trials_table(result(metric))
        assert [record["trial"] for record in table.records] == order
        assert [int(row[1].text) for row in table.rows] == order


def test_the_best_trial_is_marked():
    """Of those trained to their end, the best has a star; values are rounded for reading only."""
    table = trials_table(result("jct_s"))
    assert [row[1].text for row in table.rows if row[0].text == "★"] == ["2"]
    text = to_terminal(table, width=100)
    assert "0.123 " in text
    assert "–" in text
    assert to_dict(table)["rows"][2]["clip"] == 0.123456
