"""`yardmaster tune` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster.cli.app import main

# The commands are run in this process, as if from a terminal: torch takes seconds to load.
pytestmark = pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
TINY = (
    "--cluster", "pool:8", "--jobs", "24", "--window", "4", "--steps", "256", "--envs", "8",
    "--eval-every", "128", "--eval-episodes", "2", "--threads", "1", "--against", "sjf",
    "--vary", "clip,network.hidden",
)  # fmt: skip
LEARNER = """
[learner]
steps_per_update = 128
epochs = 1
minibatches = 1
[task]
episodes = 4
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that runs `yardmaster …` and returns code, output and remarks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(LEARNER)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["yardmaster", *arguments])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, error = capsys.readouterr()
        return code, out, error

    return run


def test_a_sweep_from_start_to_training(command):
    """Trials are printed as a table, go on later, and the best can be trained."""
    pytest.importorskip("optuna")
    options = ("tune", "--config", "mine.toml", *TINY, "-o", "sweep")
    code, out, error = command(*options, "--trials", "1")
    assert code == 0, error
    assert "network.hidden" in out
    assert "★" in out
    assert "Train with the best: yardmaster train --config sweep/best.toml" in error
    code, out, error = command(*options, "--trials", "2", "--json", "-q")
    assert (code, error) == (0, "")
    assert {row["trial"] for row in json.loads(out)["rows"]} == {0, 1}
    code, out, error = command("train", "--config", "sweep/best.toml", "-o", "run", "-q")
    assert code == 0, error


@pytest.mark.parametrize("learner", ["ppo", "d3qn", "rainbow", "sac"])
def test_spaces_can_be_seen(command, learner: str, tmp_path: Path):
    """What would be varied is printed without running anything."""
    code, out, _ = command("tune", "--learner", learner, "--show-space")
    assert code == 0
    assert "learning_rate: 0.0001 … 0.003, by factors" in out
    assert not (tmp_path / "runs").exists()


def test_mistakes_are_told(command, tmp_path: Path):
    """Names that are not varied, and folders of other things, end with code 2."""
    code, _, error = command("tune", "--vary", "clipp")
    assert code == 2
    assert "Unknown setting to vary of ppo 'clipp'. Did you mean 'clip'" in error
    code, _, error = command("tune", "-o", str(tmp_path))
    assert code == 2
    assert "is not a sweep" in error
    assert not (tmp_path / "runs").exists()
