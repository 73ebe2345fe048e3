"""The account of an import."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.workloads.traces.reading.account import Account, Dropped, Ledger, Stage, in_brief


@given(st.integers(0, 10**9), st.lists(st.integers(0, 10**6), max_size=5), st.integers(-3, 3))
def test_a_stage_must_add_up(kept: int, lost: list[int], error: int):
    """Rows read are rows kept plus rows dropped, or the account is refused."""
    dropped = tuple(Dropped(f"reason {place}", count) for place, count in enumerate(lost))
    read = kept + sum(lost) + error
    if error:
        with pytest.raises(AssertionError, match="rows"):
            Stage("rows", read, kept, dropped)
    else:
        assert Stage("rows", read, kept, dropped).kept == kept


def test_what_hit_nothing_is_not_mentioned():
    """Reasons, changes and censorings with nothing to count leave no line."""
    ledger = Ledger("mine", ["a.csv"])
    ledger.stage("rows of a.csv", 5, 5, [Dropped("never started", 0)])
    ledger.censor("still running", 0)
    ledger.change("rounded up", 0)
    text = "\n".join(ledger.closed(time_zone="UTC", begins="").lines())
    assert "5 rows of a.csv read, 5 kept" in text
    for word in ("never started", "still running", "rounded up"):
        assert word not in text


def test_counts_of_several_files_are_summed_and_remarks_said_once():
    """Files of one trace share the account."""
    ledger = Ledger("mine", ["a", "b"])
    for _ in range(2):
        ledger.stage("rows", 3, 3)
        ledger.censor("still running", 2)
        ledger.missing(["user"])
        ledger.remark("dates are shifted")
    account = ledger.closed(time_zone="UTC+8", begins="2020-01-06T00:00:00")
    assert account.censored == {"still running": 4}
    assert account.missing_columns == ("user",)
    assert account.remarks == ("dates are shifted",)
    assert account.jobs == 3


def test_an_account_survives_json():
    """What is stored with the job table can be read back by any program."""
    ledger = Ledger("mine", ["a"])
    ledger.stage("rows of a", 4, 1, [Dropped("never started", 3, ("line 2", "line 3"))])
    told = json.loads(json.dumps(ledger.closed(time_zone="", begins="").to_dict()))
    assert told["stages"][0]["dropped"][0] == {
        "reason": "never started", "count": 3, "examples": ["line 2", "line 3"],
    }  # fmt: skip


def test_lines_name_examples():
    """Dropped rows are counted with thousands separators and their first places."""
    ledger = Ledger("mine", ["a"])
    ledger.stage("rows of a", 1500, 0, [Dropped("cannot be read", 1500, ("line 2",))])
    assert (
        "  dropped 1,500: cannot be read (line 2, …)"
        in ledger.closed(time_zone="", begins="").lines()
    )


def test_an_import_in_brief():
    """One line stands for all notes of the import, with the jobs kept; other notes stay."""
    notes = (
        "import: 32 rows of may.txt read, 31 kept",
        "import: dropped 1: cannot be read",
        "import: 1,031 jobs read, 1,024 kept",
        "import: time zone: unknown",
        "the first 10 of 24 jobs",
    )
    assert in_brief(notes) == (
        "import: 1,024 of 32 jobs kept; `yardmaster workload describe FILE` tells why",
        "the first 10 of 24 jobs",
    )
    assert in_brief(notes[-1:]) == notes[-1:]
    joined = ("import: 9 rows of a.csv read, 9 kept", *notes)
    assert in_brief(joined)[0].startswith("import: 1,024 of 1,031 jobs kept; ")


def test_notes_of_an_import_say_nothing_twice():
    """Remarks are not announced as notes again, and nothing is said of columns that are there."""
    account = Account("slurm", ("a.txt",), (Stage("jobs", 2, 2),), remarks=("it rains",))
    assert "import: it rains" in account.notes()
    assert not any("columns missing" in note for note in account.notes())
