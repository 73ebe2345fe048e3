"""Commands as a user meets them: what they print, what they write, how they fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yardmaster.schedulers.learned.catalogue import shipped_names


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "yardmaster", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def failed(run_here) -> Callable[..., str]:
    """Return what runs a command that must fail as a user's mistake: a code, a message, no more."""

    def said(*arguments: str, cwd: Path) -> str:
        done = run_here(*arguments, cwd=cwd)
        assert done.returncode in (1, 2), (done.returncode, done.stdout, done.stderr)
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        assert not (cwd / "runs").exists()
        return text

    return said


def test_simulate_prints_metrics_and_writes_a_run(tmp_path: Path):
    """One scheduler, every metric, a run directory that reproduces itself."""
    done = run("simulate", "--jobs", "300", "-o", "first", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mean JCT" in done.stdout
    again = run("rerun", "first", cwd=tmp_path)
    assert again.returncode == 0
    assert "byte for byte" in again.stdout


def test_rerun_notices_a_difference(tmp_path: Path):
    """A tampered result is found, named, and gives exit code 1."""
    run("simulate", "--jobs", "50", "-o", "first", "-q", cwd=tmp_path)
    (tmp_path / "first" / "summary.json").write_text("[]")
    done = run("rerun", "first", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "run": "first",
        "identical": False,
        "different": ["summary.json"],
    }


def test_rerun_says_where_text_files_part(tmp_path: Path):
    """The first line that differs is shown from both sides, cut to what can be read."""
    run("simulate", "--jobs", "50", "-o", "first", "-q", cwd=tmp_path)
    config = tmp_path / "first" / "summary.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('"utilisation": 0', '"utilisation": 7', 1), encoding="utf-8")
    done = run("rerun", "first", "-q", cwd=tmp_path)
    assert done.returncode == 1
    line = done.stdout.splitlines()[1]
    assert line.startswith("  summary.json, line ")
    assert '"utilisation": 7' in line.partition(" became ")[0]
    assert '"utilisation": 0' in line.partition(" became ")[2]


def test_rerun_reproduces_a_part_of_a_file(tmp_path: Path):
    """Names of tenants that only jobs beyond --jobs have do not get into the report."""
    rows = "".join(f"{60 * n},600,{1 + n % 4},vc{n % 7 if n < 40 else n}\n" for n in range(60))
    (tmp_path / "jobs.csv").write_text("submit_s,duration_s,gpus,tenant\n" + rows)
    done = run(
        "compare", "-w", "jobs.csv", "-c", "pool:8", "-s", "fifo+easy,sjf+easy",
        "--jobs", "40", "-o", "part", "-q", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    again = run("rerun", "part", "-q", cwd=tmp_path)
    assert again.returncode == 0, again.stdout


def test_compare_writes_a_report(tmp_path: Path):
    """A small comparison prints a table with intervals and writes a self-contained page."""
    done = run(
        "compare", "-s", "fifo,sjf+easy", "--seeds", "3", "--jobs", "120", "-o", "cmp", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "sjf+easy" in done.stdout
    assert "[" in done.stdout
    page = (tmp_path / "cmp" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 4
    assert run("rerun", "cmp", "-q", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("style", ["json", "csv", "markdown", "latex"])
def test_compare_formats(style: str, tmp_path: Path, run_here):
    """Every format names every scheduler; JSON is JSON."""
    done = run_here(
        "compare",
        "-s",
        "fifo,saf",
        "--seeds",
        "2",
        "--jobs",
        "60",
        "--format",
        style,
        "-q",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "saf+strict" in done.stdout
    if style == "json":
        assert json.loads(done.stdout)


def test_engines_give_the_same_answer(tmp_path: Path):
    """`--engine simpy` prints the same metrics, and says that it was the engine."""
    results = []
    for engine in ("core", "simpy"):
        done = run(
            "simulate",
            "--jobs",
            "100",
            "--json",
            "-q",
            "--engine",
            engine,
            "-o",
            engine,
            cwd=tmp_path,
        )
        results.append(json.loads(done.stdout))
    assert [result.pop("engine") for result in results] == ["uncompiled", "simpy"]
    assert results[0] == results[1]


def test_own_order_by_file(tmp_path: Path):
    """A user's order of a few lines works by name, passes the check, and can be compared."""
    (tmp_path / "mine.py").write_text(
        "import yardmaster as ym\n\n"
        "@ym.order('widest', formula='minus GPUs')\n"
        "def widest(jobs):\n"
        "    return -jobs.gpus\n"
    )
    assert run("check", "mine.py:widest", cwd=tmp_path).returncode == 0
    done = run(
        "compare",
        "-s",
        "fifo,mine.py:widest+easy",
        "--jobs",
        "60",
        "--seeds",
        "2",
        "-o",
        "x",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "mine.py:widest+easy" in done.stdout
    assert run("rerun", "x", "-q", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["simulate", "-s", "sjff"], "Did you mean 'sjf'"),
        (["simulate", "-s", "sjf+eazy"], "Did you mean 'easy'"),
        (["simulate", "-s", "sjf@pak"], "Did you mean 'pack'"),
        (["simulate", "-s", "sjf~estimates"], "Did you mean 'estimate'"),
        (["simulate", "-c", "helios-venis"], "Did you mean 'helios-venus'"),
        (["simulate", "-c", "8x A1000:8"], "Did you mean 'A100'"),
        (["simulate", "-w", "venus-lik"], "Did you mean 'venus-like'"),
        (["simulate", "-w", "missing.swf"], "missing.swf"),
        (["simulate", "--jobs", "-5"], "jobs"),
        (["simulate", "--load", "nan"], "load"),
        (["simulate", "--enginee", "simpy"], "--engine"),
        (["compare", "--objective", "mean_jct"], "mean_jct_s"),
        (["compare", "-s", ""], "schedulers"),
        (["compare", "-s", "fifo,sjff,las+ezy"], "2 schedulers cannot be read"),
        (["compare", "-s", "fifo,sjf+conservative", "-c", "tenants-demo"], "cannot run on"),
        (["lst"], "list"),
        (["rerun", "nowhere"], "not a run directory"),
        (["check", "nowhere.py:x"], "nowhere.py"),
        (["list", "orderz"], "orders"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], expected: str, tmp_path: Path, failed):
    """Every misspelling gets a suggestion, every bad value a reason, and nothing is written."""
    assert expected in failed(*arguments, cwd=tmp_path).replace("\n", " ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("submit_s,duration_s,gpus\n0,-5,1\n", "must not be negative"),
        ("submit_s,duration_s,gpus\n0,nan,1\n", "duration_s"),
        ("submit_s,duration_s,gpus\n", "no jobs"),
        ("", "empty"),
        ("id,submit_s,duration_s,gpus\na,0,5,1\na,1,5,1\n", "not unique"),
        ("submit_s,duration_s,gpus\n0,abc,1\n", "abc"),
        ("submit_s,duraton_s,gpus\n0,5,1\n", "Did you mean 'duration_s'"),
    ],
)
def test_bad_tables_are_explained(content: str, expected: str, tmp_path: Path, failed):
    """Bad job tables are refused with the place and the reason."""
    (tmp_path / "jobs.csv").write_text(content)
    assert expected in failed("simulate", "-w", "jobs.csv", cwd=tmp_path)


def test_bad_cluster_file_lists_every_mistake(tmp_path: Path, failed):
    """Four mistakes in a TOML file are four lines."""
    (tmp_path / "c.toml").write_text(
        'nam = "x"\n[[nodes]]\ncount = 0\ngpu_type = "A1000"\ngpus = "eight"\n'
    )
    text = failed("simulate", "-c", "c.toml", cwd=tmp_path)
    assert sum(line.startswith("  - ") for line in text.splitlines()) >= 4
    (tmp_path / "d.toml").write_text("[[nodes]\n")
    assert "TOML" in failed("simulate", "-c", "d.toml", cwd=tmp_path)


def test_broken_swf_lines_are_counted(tmp_path: Path):
    """Broken lines of a trace are skipped, counted and shown; a job too large is reported."""
    good = "{} {} -1 10 {} -1 -1 -1 20 -1 1 1 1 -1 1 -1 -1 -1\n"
    lines = [good.format(i, i * 5, 1 + i % 4) for i in range(1, 21)]
    lines.insert(3, "garbage\n")
    lines.append(good.format(21, 200, 9999))
    (tmp_path / "t.swf").write_text("".join(lines))
    done = run("simulate", "-w", "t.swf", "-c", "2x V100:4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = done.stdout.replace("\n", " ")
    assert "broken" in text
    assert "1 of 21 jobs can never be placed" in text
    assert "unplaceable" in text


def test_list_and_doctor(tmp_path: Path):
    """`list` shows every topic with information classes, `doctor` agrees with itself."""
    done = run("list", cwd=tmp_path)
    assert done.returncode == 0
    for word in (
        "wfp3",
        "conservative",
        "spread",
        "venus-like",
        "helios-venus",
        "H200",
        "p95_jct_s",
        "max_gpus_per_node",
        "clairvoyant",
        "blind",
    ):
        assert word in done.stdout, word
    orders = json.loads(run("list", "orders", "--json", cwd=tmp_path).stdout)
    assert {row["order"] for row in orders} >= {"fifo", "qssf", "random-feasible"}
    doctor = run("doctor", cwd=tmp_path)
    assert doctor.returncode == 0, doctor.stdout
    assert "agree" in doctor.stdout
    assert "training" in doctor.stdout


def test_list_kinds_gives_speeds(tmp_path: Path):
    """Every measured kind is listed with numbers; a V100 is the measure of all."""
    rows = json.loads(run("list", "kinds", "--json", cwd=tmp_path).stdout)
    assert len(rows) == 26
    assert all(row["on V100"] == 1 and row["on H100"] >= row["on T4"] for row in rows)


def test_check_explains_a_cluster(tmp_path: Path, failed):
    """A cluster's rules in words, by name or file; mistakes in the file are listed."""
    done = run("check", "tenants-demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "team-3: 16 guaranteed, at most 64" in " ".join(done.stdout.split())
    (tmp_path / "c.toml").write_text('[[nodes]]\ngpu_type = "V100"\ngpus = 4\n')
    rules = json.loads(run("check", "c.toml", "--json", cwd=tmp_path).stdout)
    assert rules["machines"].startswith("c: 1 nodes, 4 GPUs")
    (tmp_path / "c.toml").write_text('[[nodes]]\ngpu_typ = "V100"\ngpus = 4\n')
    assert "Did you mean 'gpu_type'" in failed("check", "c.toml", cwd=tmp_path)


def test_brackets_in_lists_are_no_markup(tmp_path: Path):
    """A source that names a table in brackets keeps them."""
    assert "([power]" in run("list", "orders", cwd=tmp_path).stdout


def test_interrupting_leaves_nothing_half_written(tmp_path: Path):
    """Ctrl-C during a comparison ends with 130 and no run directory."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "yardmaster",
            "compare",
            "--jobs",
            "1000",
            "--seeds",
            "400",
            "--engine",
            "simpy",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.readline()  # at work: on a busy machine that may take a while
    assert "simulations" in said
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    left = list((tmp_path / "runs").iterdir()) if (tmp_path / "runs").exists() else []
    assert left == []


def test_first_result_comes_quickly(tmp_path: Path):
    """`simulate` of 1,000 jobs takes at most 2.5 s, start-up included."""
    durations = []
    for number in range(6):
        begun = time.perf_counter()
        done = run("simulate", "--jobs", "1000", "-q", "-o", str(number), cwd=tmp_path)
        durations.append(time.perf_counter() - begun)
        assert done.returncode == 0
        if durations[-1] <= 2.5:
            break
    assert min(durations) <= 2.5


def test_notes_reach_every_format(tmp_path: Path):
    """What was left out is said in JSON, beside CSV, and in the run directory."""
    (tmp_path / "jobs.csv").write_text("submit_s,duration_s,gpus\n0,5,1\n1,5,99\n")
    arguments = ["simulate", "-w", "jobs.csv", "-c", "pool:4"]
    done = run(*arguments, "--json", "-q", "-o", "a", cwd=tmp_path)
    assert any("never be placed" in note for note in json.loads(done.stdout)["notes"])
    meta = json.loads((tmp_path / "a" / "meta.json").read_text())
    assert any("never be placed" in note for note in meta["notes"])
    done = run(*arguments, "--format", "csv", "-q", "-o", "b", cwd=tmp_path)
    assert "never be placed" in done.stderr


def test_a_run_keeps_the_users_order(tmp_path: Path):
    """A run with an order of the user's can be made again after the file changed or went."""
    source = tmp_path / "mine.py"
    source.write_text("def widest(jobs):\n    return -jobs.gpus\n")
    done = run("simulate", "-s", "mine.py:widest", "--jobs", "80", "-o", "x", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    source.write_text("def widest(jobs):\n    return jobs.gpus\n")
    assert run("rerun", "x", "-q", cwd=tmp_path).returncode == 0
    source.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("rerun", str(tmp_path / "x"), "-q", cwd=elsewhere).returncode == 0


@pytest.mark.parametrize("where", ["top", "function"])
def test_a_run_keeps_what_the_users_order_imports(tmp_path: Path, where: str):
    """Modules beside an order are kept with it: they too may change later."""
    line = "from signs import SIGN\n"
    top, inner = (line, "") if where == "top" else ("", f"    {line}")
    (tmp_path / "mine.py").write_text(
        f"{top}def widest(jobs):\n{inner}    return SIGN * jobs.gpus\n"
    )
    (tmp_path / "signs.py").write_text("SIGN = -1\n")
    asked = ("simulate", "-s", "mine.py:widest", "--jobs", "100", "--load", "3", "-q", "-o")
    done = run(*asked, "x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "signs.py").write_text("SIGN = +1.0\n")
    again = run("rerun", "x", "-q", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert run(*asked, "y", cwd=tmp_path).returncode == 0
    first, other = (json.loads((tmp_path / one / "summary.json").read_text()) for one in "xy")
    assert first[0]["mean_wait_s"] != other[0]["mean_wait_s"]


def test_demo_writes_where_it_says(tmp_path: Path):
    """The demo writes ./demo, prints at least eight schedulers with intervals, and can be rerun."""
    done = run("demo", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo" / "report.html").exists()
    assert sum("[" in line and "easy" in line for line in done.stdout.splitlines()) >= 5
    rows = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert len(rows) == 8 * (12 + len(shipped_names()))
    assert {f"policy:{name}" for name in shipped_names()} <= {row["scheduler"] for row in rows}


def test_the_quick_demo_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a machine that has compiled nothing, a table and a report come without compiling."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = run("demo", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum("[" in line for line in done.stdout.splitlines()) >= 4
    assert (tmp_path / "demo" / "report.html").exists()
    assert not list((tmp_path / "cache").rglob("*.nbi"))
