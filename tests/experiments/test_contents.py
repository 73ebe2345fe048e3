"""Digests of users' files."""

from __future__ import annotations

from pathlib import Path

from yardmaster.experiments.contents import digest_of, replayed_by

RECIPE = """
[arrivals]
process = "replayed"
file = "log.csv"
"""


def test_a_file_is_known_by_what_it_holds(tmp_path: Path):
    """Wherever it lies, and until it is changed; what is no file has no digest."""
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("submit_s\n0\n")
    other.write_text(one.read_text())
    before = digest_of(str(one))
    assert digest_of(str(other)) == before
    one.write_text("submit_s\n1\n")
    assert digest_of(str(one)) not in (before, None)
    assert digest_of("lognormal") is None


def test_a_folder_is_known_by_all_its_files(tmp_path: Path):
    """A file that is changed, added or renamed is another folder."""
    (tmp_path / "parts").mkdir()
    seen = {digest_of(str(tmp_path))}
    for name, text in (("parts/a", "1"), ("parts/a", "2"), ("parts/b", "2")):
        (tmp_path / name).write_text(text)
        seen.add(digest_of(str(tmp_path)))
    (tmp_path / "parts/b").rename(tmp_path / "parts/c")
    seen.add(digest_of(str(tmp_path)))
    assert len(seen) == 5


def test_a_recipe_counts_with_the_arrivals_it_replays(tmp_path: Path):
    """A change of the file that it leans on is a change of the recipe."""
    log, recipe = tmp_path / "log.csv", tmp_path / "mine.toml"
    log.write_text("submit_s,duration_s,gpus\n0,10,1\n5,10,1\n")
    recipe.write_text(RECIPE)
    assert Path(replayed_by(str(recipe)) or "").resolve() == log
    before = digest_of(str(recipe), str(log))
    log.write_text(log.read_text() + "9,10,1\n")
    assert digest_of(str(recipe), str(log)) not in (before, digest_of(str(recipe)))
