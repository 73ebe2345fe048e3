"""`yardmaster experiment ablation` and `lookahead` as a user meets them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from yardmaster.cli.app import main
from yardmaster.experiments.training.evaluation import HIGHER_IS_BETTER
from yardmaster.experiments.trainings import ablation, lookahead
from yardmaster.experiments.trainings.ablation import AblationOptions, AblationResult
from yardmaster.experiments.trainings.lookahead import RESULTS, LookaheadOptions, LookaheadResult
from yardmaster.experiments.trainings.running import TrainingsResult

pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that runs `yardmaster experiment …`: code, output and remarks."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["yardmaster", "experiment", *arguments])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, error = capsys.readouterr()
        return code, out, error

    return run


def trained(*failures: tuple[str, str], is_complete: bool = True) -> TrainingsResult:
    return TrainingsResult(2, 0, failures, is_complete, 1.0, 1.0, ("off-mlp-0",))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list:
    """Answer studies at once; return what was asked for."""
    found: list = []

    def run_ablation(folder: Path, options: AblationOptions, **_more) -> AblationResult:
        found.append((folder, options))
        return AblationResult(folder, trained(is_complete=False), None)

    def run_lookahead(folder: Path, options: LookaheadOptions, **_more) -> LookaheadResult:
        found.append((folder, options))
        names = {"task": "gpu-optimizer", "metric": "returns", "architecture": "mlp",
                 "lookahead": "off", "training_seed": 0, "steps": 5}  # fmt: skip
        rows = [names | {"episode": n} | dict.fromkeys(HIGHER_IS_BETTER, 0.5) for n in range(3)]
        folder.mkdir(parents=True)
        pl.DataFrame(rows).write_parquet(folder / RESULTS)
        return LookaheadResult(folder, trained(("off-mlp-1", "NaN")), has_results=True)

    monkeypatch.setattr(ablation, "run_ablation", run_ablation)
    monkeypatch.setattr(lookahead, "run_lookahead", run_lookahead)
    return found


def test_an_ablation_that_was_stopped_says_how_to_go_on(command, asked, tmp_path: Path):
    """Options reach the study; Ctrl-C leaves with 130."""
    (tmp_path / "small.toml").write_text("[train]\nenvs = 4\n")
    code, _, error = command(
        "ablation", "--family", "drift", "--reward", "p95", "--seeds", "7", "--steps", "99",
        "--variants", "no job ages,labels given", "--config", "small.toml",
    )  # fmt: skip
    assert code == 130
    assert "Go on with the same command (--out runs/experiment-ablation)" in error
    [(folder, options)] = asked
    assert folder == Path("runs/experiment-ablation")
    assert options == AblationOptions(
        family="drift", reward="p95", seeds=7, steps=99, variants=("no job ages", "labels given"),
        tables={"train": {"envs": 4}},
    )  # fmt: skip


def test_a_lookahead_prints_and_lists_what_failed(command, asked):
    """The table is printed and written with its figure; a failed training makes the code 1."""
    code, out, error = command("lookahead", "-o", "mine", "--modes", "off", "--quiet")
    assert code == 1
    assert "Lookahead and architecture on gpu-optimizer" in out
    assert "  - off-mlp-1: NaN" in error
    assert "In 1 of 2 trainings nothing was better than the network before its first step" in error
    assert Path("mine/report/lookahead.png").is_file()
    assert asked[0][1].modes == ("off",)


def test_names_are_checked_first(command):
    """Mistakes end with a message that suggests what was meant."""
    for arguments, complaint in (
        (("ablation", "--reward", "mixd"), "Did you mean 'mixed'?"),
        (("ablation", "--variants", "no energy", "--dry-run"), "Did you mean 'no energy term'"),
        (("lookahead", "--task", "gpu-optimiser"), "Did you mean 'gpu-optimizer'"),
        (("lookahead", "--config", "none.toml"), "there is no such file"),
    ):
        code, _, error = command(*arguments)
        assert code == 2
        assert complaint in error
    assert not Path("runs").exists()
