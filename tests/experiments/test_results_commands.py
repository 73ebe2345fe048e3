"""Pages of results can be made again by one command each, and the page on robustness is honest."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = SimpleNamespace(**runpy.run_path(str(ROOT / "experiments" / "results.py")))
ROBUSTNESS = SimpleNamespace(**runpy.run_path(str(ROOT / "experiments" / "robustness_page.py")))
INDEX = (ROOT / "docs" / "index.md").read_text("utf-8").partition("## Results")[2]


def test_the_index_names_every_result():
    """Each name of the command is in the table of results, on the row of its page."""
    shown = re.findall(r"\]\(([^)#]+)[^)]*\) \| `(\w+)` \|", INDEX)
    assert {name: f"docs/{page}" for page, name in shown} == {
        name: result.page for name, result in RESULTS.RESULTS.items()
    }


@pytest.mark.parametrize("name", RESULTS.RESULTS)
def test_pages_and_commands_are_there(name: str):
    """The page exists, the programs exist, and commands of `yardmaster` parse."""
    from yardmaster.cli.app import app

    result = RESULTS.RESULTS[name]
    assert (ROOT / result.page).is_file()
    for command in result.commands:
        program, first, *_ = shlex.split(command)
        if program == "yardmaster":
            app.parse_args(shlex.split(command)[1:], exit_on_error=False, print_error=False)
        else:
            assert (ROOT / first).is_file()


def test_commands_run_in_order_until_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The commands of a page run one after the other; the first that fails is the last."""
    note = f'python -c \'open("{tmp_path / "said"}", "a").write("x")\''
    commands = (note, note, "python -c 'raise SystemExit(3)'", note)
    monkeypatch.setitem(RESULTS.RESULTS, "hard", RESULTS.Result("docs/regimes.md", commands, ""))
    assert RESULTS.main(["hard"]) == 3
    assert (tmp_path / "said").read_text() == "xx"
    assert RESULTS.main([]) == 0
    assert "league: docs/results.md" in capsys.readouterr().out
    assert RESULTS.as_run("yardmaster list") == [sys.executable, "-m", "yardmaster", "list"]


def runs(change: float) -> pl.DataFrame:
    """Return runs of two rules on one regime, as it is and disturbed, and one that drifts."""
    rows = [
        {
            "family": family,
            "regime": family,
            "seed": seed,
            "scheduler": scheduler,
            "perturbation": kind,
            "severity": severity,
            "mean_jct_s": (100.0 + seed) * (1 + change * severity),
            **dict.fromkeys(
                ("oracle_gap_mean_jct_s", "oracle_gap_p95_jct_s", "oracle_gap_mixed_cost"),
                0.5 if scheduler == "edf" else 0.0,
            ),
        }
        for family, kind, severity in (
            ("rlmetadqn", "none", 0.0),
            ("rlmetadqn", "dip", 1.0),
            ("rlmetadqn", "dip", 2.0),
            ("drift", "none", 0.0),
        )
        for seed in range(8)
        for scheduler in ("srpt", "edf")
    ]
    return pl.DataFrame(rows)


def test_changes_are_against_the_same_jobs():
    """Disturbed runs are held against the same regime, seed and rule; both ends are shown."""
    page = ROBUSTNESS.page_of(runs(change=0.1))
    strong, mild = page.split("## Change of mean JCT at ")[1:3]
    assert "| srpt | +20.0 [+20.0, +20.0] |" in strong
    assert "| srpt | +10.0 [+10.0, +10.0] |" in mild.partition("##")[0]
    assert "| edf | +50.0 [+50.0, +50.0] | +50.0 [+50.0, +50.0] |" in page


def test_other_numbers_of_seeds_are_refused():
    """The page states its interval for eight seeds and takes no others."""
    with pytest.raises(SystemExit, match="8 seeds, and the folder has 3"):
        ROBUSTNESS.page_of(runs(0.1).filter(pl.col("seed") < 3))
