"""Job tables: files that keep every job exactly, and mistakes named with file and row."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import InvalidWorkloadError, YardmasterError
from yardmaster.model.workload import COLUMN_NAMES, LABEL_COLUMNS, Workload
from yardmaster.workloads.synthetic import generate
from yardmaster.workloads.tables import read_table, write_table

ORACLES = Path(__file__).resolve().parents[2] / ".." / "shared/oracles"
ENDINGS = (".csv", ".parquet")

# NUL cannot end a NumPy string, and half a surrogate pair cannot be written as UTF-8.
letters = st.characters(exclude_categories=("Cs",), exclude_characters="\x00")
texts = st.text(letters, min_size=1, max_size=6)
labels = st.one_of(
    st.none(), texts, st.sampled_from(["NaN", "null", " a ", 'q"', "x,y", "1", "n\n"])
)
times = st.one_of(st.integers(0, 10**9).map(float), st.floats(0, 1e15, allow_nan=False))
maybe = st.one_of(st.just(float("nan")), st.floats(1e-9, 1e15))


@st.composite
def workloads(draw) -> Workload:
    """Draw a valid workload that uses every column."""
    jobs = draw(st.integers(1, 6))

    def column(values):
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    gpus = column(st.integers(1, 64))
    milli = [draw(st.integers(1, 1000)) if count == 1 else 1000 for count in gpus]
    ids = st.one_of(
        st.lists(st.integers(-(10**17), 10**17), min_size=jobs, max_size=jobs, unique=True),
        st.lists(texts, min_size=jobs, max_size=jobs, unique=True),
    )
    return Workload.of(
        id=np.array(draw(ids)),
        submit_s=column(times),
        duration_s=column(times),
        estimate_s=column(maybe),
        gpus=gpus,
        milli_gpu=milli,
        max_gpus_per_node=column(st.integers(0, 8)),
        min_gpus=[draw(st.integers(0, count)) for count in gpus],
        max_gpus=[draw(st.one_of(st.just(0), st.integers(count, 99))) for count in gpus],
        gpu_memory_gib=column(maybe),
        recorded_wait_s=column(maybe),
        cpus=column(maybe),
        memory_gib=column(maybe),
        priority=column(st.floats(-1e300, 1e300)),
        deadline_s=column(maybe),
        **{key: column(labels) for key in LABEL_COLUMNS},
        name=draw(texts),
        notes=draw(st.lists(texts, max_size=3)),
    )


def _same_jobs(first: Workload, second: Workload) -> None:
    for key in COLUMN_NAMES:
        one, other = getattr(first, key), getattr(second, key)
        if key in LABEL_COLUMNS:
            assert one.values() == other.values(), key
        else:
            assert one.dtype.kind == other.dtype.kind, key
            np.testing.assert_array_equal(one, other, err_msg=key)


def _through_file(workload: Workload, ending: str) -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"jobs{ending}"
        write_table(workload, path)
        return read_table(path)


@settings(max_examples=80, deadline=None)
@given(workloads())
def test_parquet_keeps_everything(workload):
    """Jobs, name and notes come back from a Parquet file exactly as they went in."""
    again = _through_file(workload, ".parquet")
    _same_jobs(workload, again)
    assert (again.name, again.notes) == (workload.name, workload.notes)


@settings(max_examples=120, deadline=None)
@given(workloads())
def test_csv_keeps_every_job(workload):
    """Jobs come back from a CSV file exactly; only text that is a number becomes one."""
    again = _through_file(workload, ".csv")
    if workload.id.dtype.kind == "U" and again.id.dtype.kind == "i":
        again = again.with_columns(id=again.id.astype(str))
    _same_jobs(workload, again)
    assert again.name == "jobs"


@pytest.mark.parametrize("ending", ENDINGS)
def test_generated_workloads_keep_their_fingerprint(ending):
    """A workload read back is the same workload, label codes and all."""
    workload = generate(jobs=2000, seed=3, gpus=64, load=0.9)
    assert _through_file(workload, ending).fingerprint() == workload.fingerprint()


def test_csv_ids_with_leading_zeros_stay_text(tmp_path):
    """007 is a name, not the number 7."""
    (tmp_path / "a.csv").write_text("id,submit,duration\n007,0,1\n8,0,1\n")
    assert read_table(tmp_path / "a.csv").id.tolist() == ["007", "8"]


@pytest.mark.skipif(not ORACLES.exists(), reason="needs shared/oracles beside the repository")
def test_short_column_names_are_read():
    """The consensus tables use the short names; their load is the stated one."""
    workload = read_table(ORACLES / "w1000_l110_n8.csv")
    assert len(workload) == 1000
    assert workload.id.dtype.kind == "i"
    assert workload.load(64) == pytest.approx(1.1, rel=1e-5)
    assert workload.has_estimates
    assert workload.user.values()[0] == "u26"


def test_empty_cells_mean_what_the_columns_say(tmp_path):
    """An empty cell takes the column's default; spaces around numbers do not matter."""
    (tmp_path / "a.csv").write_text(
        "submit_s, duration_s ,gpus,estimate_s,priority,milli_gpu,user\n"
        "1, 2 ,,,,,\n"
        "3,4,2,9,1.5,1000,ann\n"
    )
    workload = read_table(tmp_path / "a.csv")
    assert workload.gpus.tolist() == [1, 2]
    assert workload.milli_gpu.tolist() == [1000, 1000]
    assert workload.priority.tolist() == [0.0, 1.5]
    assert np.isnan(workload.estimate_s[0])
    assert workload.user.values() == [None, "ann"]
    assert workload.id.tolist() == [0, 1]


MISTAKES = {
    "empty": ("", "the file is empty"),
    "blank": ("\n \n", "the file is empty"),
    "header only": ("submit_s,duration_s\n", "it has no jobs"),
    "word": ("submit,duration\n1,2\n3,soon\n", r"row 1: duration_s is 'soon', not a number"),
    "no submit": ("submit,duration\n1,2\n,2\n", "row 1: submit_s is empty"),
    "nan submit": ("submit,duration\nnan,2\n", r"row 0 .*submit_s must be a .*number"),
    "negative": ("submit,duration\n1,2\n3,-4\n", r"row 1 .*duration_s must not be negative"),
    "half a GPU": ("submit,duration,gpus\n1,2,2.5\n", r"row 0: gpus is .*2\.5.*, not a whole"),
    "same id": ("id,submit,duration\n7,1,2\n7,3,4\n", r"row 1 \(id 7\): id is not unique"),
    "no id": ("id,submit,duration\n7,1,2\n,3,4\n", "row 1: id is empty"),
    "misspelt": ("submit_s,durations_s\n1,2\n", "unknown column 'durations_s'. Did you mean"),
    "missing": ("submit_s,gpus\n1,2\n", "column 'duration_s' is required"),
    "twice": ("submit,duration,gpus,gpus\n1,2,3,3\n", "column 'gpus' is there more than once"),
    "alias too": ("submit,submit_s,duration\n1,1,3\n", "'submit_s' is there more than once"),
    "semicolons": ("submit;duration\n1;2\n", "separated by ','"),
    "short row": ("submit,duration,gpus\n1,2,3\n4,5\n", "line 3: 2 cells, but the header has 3"),
    "long row": ("submit,duration\n1,2\n3,4,5\n", "line 3: 3 cells, but the header has 2"),
    "gap": ("submit,duration\n1,2\n\n3,4\n", "line 3: 0 cells"),
    "open quote": ('submit,duration,user\n1,2,"a\n', "line"),
    "not UTF-8": (b"submit,duration,user\n1,2,a\n3,4,\xff\n", "line 3 is not UTF-8 text"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_csv_mistakes_name_the_file_and_the_row(case, tmp_path):
    """Every mistake in a CSV file is an error that names the file and the place."""
    content, message = MISTAKES[case]
    path = tmp_path / "jobs.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidWorkloadError, match=message) as error:
        read_table(path)
    assert str(path) in str(error.value)


def test_many_mistakes_are_listed_and_counted(tmp_path):
    """Mistakes of several columns are listed together, the surplus is counted."""
    rows = "\n".join("x,y" for _ in range(30))
    (tmp_path / "a.csv").write_text(f"submit,duration\n{rows}\n")
    with pytest.raises(InvalidWorkloadError, match=r"60 mistakes\n(.|\n)*… and 40 more"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"submit_s": [1.0], "duration_s": ["x"]}, "row 0: duration_s is 'x', not a number"),
        ({"submit_s": [1.0], "duration_s": [[1]]}, "column 'duration_s' holds List"),
        ({"submit_s": [1.0], "duration_s": [1.0], "user": [[1]]}, "column 'user' holds List"),
        ({"submit_s": [1.0, None], "duration_s": [1.0, 2.0]}, "row 1: submit_s is empty"),
        ({"submit_s": [1.0], "duration_s": [1.0], "id": [None]}, "row 0: id is empty"),
        ({"submit_s": [1.0], "duration_s": [1.0], "gpu": [1]}, "Did you mean 'gpus'"),
    ],
)
def test_parquet_mistakes_name_the_file_and_the_column(columns, message, tmp_path):
    """Parquet columns of the wrong kind, empty cells and unknown names are errors."""
    pl.DataFrame(columns).write_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(InvalidWorkloadError, match=message) as error:
        read_table(tmp_path / "jobs.parquet")
    assert "jobs.parquet" in str(error.value)


def test_parquet_from_other_programs_is_read(tmp_path):
    """Narrow integers, categories, aliases and absent metadata are all fine."""
    frame = pl.DataFrame(
        {"job_id": [5, 4], "submit": [1, 2], "duration": [3, 4], "user": ["a", None]},
        schema={"job_id": pl.UInt16, "submit": pl.Int32, "duration": pl.Float32,
                "user": pl.Categorical},
    )  # fmt: skip
    frame.write_parquet(tmp_path / "theirs.parquet")
    workload = read_table(tmp_path / "theirs.parquet")
    assert workload.id.tolist() == [5, 4]
    assert workload.duration_s.tolist() == [3.0, 4.0]
    assert workload.user.values() == ["a", None]
    assert (workload.name, workload.notes) == ("theirs", ())


def test_files_that_cannot_be_read_or_written_are_user_errors(tmp_path):
    """Wrong endings, missing folders and files that only pretend to be Parquet."""
    workload = generate("mm", jobs=2, seed=0, gpus=1, load=0.5)
    with pytest.raises(InvalidWorkloadError, match=r"ends in \.parquet or \.csv"):
        write_table(workload, tmp_path / "jobs.xlsx")
    with pytest.raises(InvalidWorkloadError, match="Cannot write"):
        write_table(workload, tmp_path / "nowhere" / "jobs.csv")
    with pytest.raises(InvalidWorkloadError, match="No such file"):
        read_table(tmp_path / "jobs.csv")
    (tmp_path / "jobs.parquet").write_text("submit,duration\n1,2\n")
    with pytest.raises(InvalidWorkloadError, match=r"jobs\.parquet is not a Parquet file"):
        read_table(tmp_path / "jobs.parquet")


def _workload_or_error(path: Path) -> Workload | YardmasterError:
    try:
        return read_table(path)
    except YardmasterError as error:
        return error


cells = st.one_of(st.integers(-5, 99).map(str), st.text(max_size=5), st.just('"'), st.just(""))


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.lists(cells, min_size=1, max_size=4).map(",".join), max_size=6))
def test_garbage_csv_gives_jobs_or_a_clear_error(rows):
    """Whatever stands below the header, the result is a workload or a YardmasterError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        text = "\n".join(["submit,duration,gpus", *rows])
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        result = _workload_or_error(path)
    assert isinstance(result, Workload) or "jobs.csv" in str(result)
