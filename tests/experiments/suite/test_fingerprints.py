"""Digests of code change exactly when the results could."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from yardmaster.engine.picking.sight import Sight
from yardmaster.errors import YardmasterError
from yardmaster.experiments.suite.fingerprints import (
    code_fingerprint,
    name_by_content,
    scheduler_fingerprint,
    without_orders,
)
from yardmaster.schedulers import orders
from yardmaster.schedulers.learned import catalogue
from yardmaster.schedulers.learned.policy_file import write_policy
from yardmaster.testing.policies import random_policy

SOURCE = inspect.getsource(orders)


def test_an_order_is_no_part_of_what_all_share():
    """Editing, lengthening or removing one order leaves the shared part of the module alone."""
    shared = without_orders(SOURCE)
    edited = SOURCE.replace("return jobs.run_s * jobs.gpus\n", "# or so\n\n    return jobs.run_s\n")
    assert edited != SOURCE
    assert without_orders(edited) == shared
    assert '@order("saf"' not in shared


def test_what_orders_lean_on_is_shared():
    """Functions and constants that several orders use count for all."""
    shared = without_orders(SOURCE)
    assert without_orders(SOURCE.replace("seconds, 1.0", "seconds, 2.0")) != shared
    assert without_orders(SOURCE.replace("3_250.0", "3_251.0")) != shared
    assert set(re.findall(r"^def (\w+)", shared, re.MULTILINE)) >= {"order", "_at_least_one"}


def test_the_code_has_one_digest():
    """It is the same every time, and no secret of the process."""
    assert code_fingerprint() == code_fingerprint.__wrapped__()
    assert re.fullmatch("[0-9a-f]{64}", code_fingerprint())


def test_schedulers_differ():
    """Different orders, disciplines and placements have different digests; spellings do not."""
    names = ["sjf+skip", "srpt+skip", "sjf+easy", "sjf+skip@first", "sjf+skip~estimate"]
    assert len({scheduler_fingerprint(name) for name in names}) == len(names)
    assert scheduler_fingerprint("sjf+skip@pack") == scheduler_fingerprint("sjf+skip")


def test_an_own_order_counts_with_its_file(tmp_path, monkeypatch):
    """Any change to the file of a user's own order is another scheduler."""
    file = tmp_path / "mine.py"
    file.write_text("def first(jobs):\n    return jobs.submit_s\n")
    before = scheduler_fingerprint(f"{file}:first+skip")
    file.write_text("TWO = 2\ndef first(jobs):\n    return jobs.submit_s * TWO\n")
    assert scheduler_fingerprint(f"{file}:first+skip") != before
    module = tmp_path / "my_orders.py"
    module.write_text("class Last:\n    def __call__(self, jobs):\n        return -jobs.submit_s\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = scheduler_fingerprint("my_orders:Last")
    module.write_text(module.read_text() + "# changed\n")
    assert scheduler_fingerprint("my_orders:Last") != before


def test_an_order_in_a_package_counts_with_its_siblings(tmp_path, monkeypatch):
    """What it imports by the package's name, or from beside it, is part of it."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_package"
    package.mkdir()
    text = "from own_package.keys import KEY\nfrom .more import MORE\n"
    (package / "orders.py").write_text(f"{text}def by(jobs):\n    return jobs.gpus * KEY * MORE\n")
    (package / "keys.py").write_text("KEY = 1\n")
    (package / "more.py").write_text("MORE = 1\n")
    found = {scheduler_fingerprint("own_package.orders:by+skip")}
    for name in ("keys", "more"):
        (package / f"{name}.py").write_text(f"{name.upper().removesuffix('S')} = 2\n")
        found.add(scheduler_fingerprint("own_package.orders:by+skip"))
    assert len(found) == 3


@pytest.mark.parametrize("named", ["file", "module"])
def test_an_own_order_counts_with_what_it_imports_beside_it(tmp_path, monkeypatch, named):
    """A change of a module that it leans on is another scheduler; of one that it does not, none."""
    monkeypatch.syspath_prepend(tmp_path)
    order, leant_on = f"order_of_{named}", f"leant_on_by_{named}"
    file = tmp_path / f"{order}.py"
    file.write_text(f"from {leant_on} import KEY\ndef by(jobs):\n    return jobs.gpus * KEY\n")
    beside, other = tmp_path / f"{leant_on}.py", tmp_path / "other.py"
    beside.write_text("KEY = 1\n")
    other.write_text("KEY = 1\n")
    name = f"{file if named == 'file' else order}:by+skip"
    before = scheduler_fingerprint(name), name_by_content(name)
    other.write_text("KEY = 2\n")
    assert (scheduler_fingerprint(name), name_by_content(name)) == before
    beside.write_text("KEY = 2\n")
    assert scheduler_fingerprint(name) != before[0]
    assert (name_by_content(name) != before[1]) == (named == "file")


def test_an_order_made_by_a_class_beside_it_counts_with_that(tmp_path):
    """It has no source of its own, and its class is in another file."""
    file, beside = tmp_path / "made.py", tmp_path / "maker_beside.py"
    file.write_text("from maker_beside import Weighted\nby = Weighted()\n")
    maker = "class Weighted:\n    def __call__(self, jobs):\n        return jobs.gpus * 1\n"
    beside.write_text(maker)
    before = scheduler_fingerprint(f"{file}:by+skip")
    assert scheduler_fingerprint(f"{file}:by+skip") == before
    beside.write_text(maker.replace("1", "2"))
    assert scheduler_fingerprint(f"{file}:by+skip") != before


def test_a_missing_file_is_named():
    """A scheduler whose file is not there is refused."""
    with pytest.raises(YardmasterError, match="nowhere"):
        scheduler_fingerprint("policy:nowhere/policy.npz")


def test_a_policy_that_comes_along_counts_with_its_weights(tmp_path, monkeypatch):
    """The name stays the same when the policy behind it is trained again; its runs do not."""
    monkeypatch.setattr(catalogue, "SHIPPED", tmp_path)
    digests = set()
    for seed in (1, 2, 1):
        write_policy(tmp_path / "mine.npz", random_policy(Sight(window=4), seed))
        digests.add(scheduler_fingerprint("policy:mine"))
    assert len(digests) == 2


def test_a_chooser_counts_with_its_menu(tmp_path):
    """Who chooses among schedulers depends on each of them, and on its own weights."""
    from types import SimpleNamespace

    from yardmaster.experiments.suite import fingerprints

    weights = tmp_path / "policy.npz"
    weights.write_bytes(b"1")

    def digest(*menu: str, path: Path | None = None) -> bytes:
        sight = SimpleNamespace(menu=menu)
        chooser = (
            SimpleNamespace(sight=sight)
            if path is None
            else SimpleNamespace(sight=sight, path=path)
        )
        return fingerprints._who_is_next(SimpleNamespace(chooser=chooser))

    with_weights = digest("sjf+skip", "fifo", path=weights)
    assert len({digest("sjf+skip", "fifo"), digest("fifo", "sjf+skip"), with_weights}) == 3
    weights.write_bytes(b"2")
    assert digest("sjf+skip", "fifo", path=weights) != with_weights
