"""Finding and unpacking the files of a trace."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from yardmaster.errors import InvalidWorkloadError, TraceFormatError
from yardmaster.workloads.traces.reading.trace_files import TraceFile, opened

TEXT = b"job_id,gpus\n1,2\n"


def tarred(members: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", TEXT),
        ("a.csv.gz", gzip.compress(TEXT)),
        ("a.csv", gzip.compress(TEXT)),
        ("a.bz2", bz2.compress(TEXT)),
        ("a.xz", lzma.compress(TEXT)),
        ("a.zip", zipped({"inner.csv": TEXT})),
        ("a.tar", tarred({"inner.csv": TEXT}, "w")),
        ("a.tar.gz", tarred({"./deep/inner.csv": TEXT}, "w:gz")),
        ("a.zip", zipped({"part.csv.gz": gzip.compress(TEXT)})),
        ("a.zip", zipped({"repository/data.zip": zipped({"inner.csv": TEXT})})),
        ("a.zip", zipped({"data.tar.gz": tarred({"inner.csv": TEXT}, "w:gz")})),
        ("a.tar", tarred({"data.tgz": tarred({"x.csv.gz": gzip.compress(TEXT)}, "w:gz")}, "w")),
    ],
    ids=[
        "plain",
        "gzip",
        "gzip by content",
        "bzip2",
        "xz",
        "zip",
        "tar",
        "tar in a folder",
        "gzip in zip",
        "zip in zip",
        "tar in zip",
        "gzip in tar in tar",
    ],
)
def test_files_are_read_as_they_were_downloaded(tmp_path: Path, name: str, content: bytes):
    """Whatever the packing and whatever the name says, the plain content comes out."""
    path = tmp_path / name
    path.write_bytes(content)
    with opened([path]) as files:
        assert [file.path.read_bytes() for file in files] == [TEXT]
    assert path.read_bytes() == content


def test_archives_in_archives_end_somewhere(tmp_path: Path):
    """A third archive inside the second is refused, so that none can go on for ever."""
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"b.zip": zipped({"c.zip": zipped({"inner.csv": TEXT})})}))
    with pytest.raises(TraceFormatError, match=r"b\.zip!c\.zip: too many"), opened([path]):
        pass


def test_a_zip_that_broke_off_is_damaged(tmp_path: Path):
    """Half a download is not taken for a table of an unknown format."""
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"inner.csv": TEXT * 50})[:-30])
    with pytest.raises(TraceFormatError, match="damaged"), opened([path]):
        pass


def test_choosing_files_does_not_depend_on_capitals(tmp_path: Path):
    """`--only venus` finds data/Venus."""
    path = tmp_path / "data.zip"
    path.write_bytes(zipped({"data/Venus/log.csv": TEXT, "data/Earth/log.csv": TEXT}))
    with opened([path], only="venus") as files:
        assert [file.name for file in files] == [f"{path}!data/Venus/log.csv"]


def test_pipes_are_refused(tmp_path: Path):
    """What can be read only once would lose its beginning, so it is refused without waiting."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InvalidWorkloadError, match="write it to a file first"), opened([pipe]):
        pass


def test_folders_are_searched_and_hidden_files_are_not(tmp_path: Path):
    """A folder gives its files in order, with those in archives, without hidden ones."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.csv").write_bytes(TEXT)
    (tmp_path / "a.zip").write_bytes(zipped({"x.csv": TEXT, "__MACOSX/x": b"", ".hidden": b""}))
    (tmp_path / ".hidden").write_bytes(TEXT)
    with opened([tmp_path]) as files:
        assert [file.short_name for file in files] == ["x.csv", "z.csv"]


def test_only_some_files(tmp_path: Path):
    """`only` picks by name, inside archives too; nothing left is an error with the names."""
    path = tmp_path / "data.zip"
    path.write_bytes(zipped({"data/Venus/log.csv": TEXT, "data/Earth/log.csv": TEXT}))
    with opened([path], only="Venus") as files:
        assert [file.name for file in files] == [f"{path}!data/Venus/log.csv"]
    with (
        pytest.raises(InvalidWorkloadError, match="Earth"),
        opened([path], only="Mars"),
    ):
        pass


def test_members_cannot_escape(tmp_path: Path):
    """A member that names a place outside is unpacked like any other, into a private folder."""
    path = tmp_path / "evil.tar"
    path.write_bytes(tarred({"../../escaped.csv": TEXT}, "w"))
    with opened([path]) as files:
        assert files[0].path.read_bytes() == TEXT
        assert not files[0].path.is_relative_to(tmp_path)
    assert [found.name for found in tmp_path.rglob("*")] == ["evil.tar"]


@pytest.mark.parametrize(
    "content",
    [gzip.compress(TEXT * 99)[:-9], tarred({"x": TEXT * 999}, "w:gz")[:-40]],
    ids=["gzip", "tar"],
)
def test_damaged_archives_are_named(tmp_path: Path, content: bytes):
    """A download that broke off gives an error with its name, not a part of the trace."""
    path = tmp_path / "broken.gz"
    path.write_bytes(content)
    with (
        pytest.raises(TraceFormatError, match=r"broken\.gz.* is damaged"),
        opened([path]) as files,
    ):
        [file.path for file in files]


def test_missing_files_are_named(tmp_path: Path):
    """A file that is not there is named, with files that are."""
    (tmp_path / "cluster_log.csv").write_bytes(TEXT)
    with (
        pytest.raises(InvalidWorkloadError, match="cluster_log"),
        opened([tmp_path / "cluster_logs.csv"]),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "line", "columns"),
    [
        ("a,B , c\n1,2,3\n", 0, ("a", "b", "c")),
        ("\ufeffa,b\r\n1,2\r\n", 0, ("a", "b")),
        ("# licence: x, y\n# more\na,b\n1,2\n", 2, ("a", "b")),
        ("#job id,arrival\n0,1\n", 0, ("job id", "arrival")),
        ("# two, words\n#job id,arrival\n0,1\n", 1, ("job id", "arrival")),
        ("a,b\r1,2\r", 0, ("a", "b")),
    ],
)
def test_headers_are_found(tmp_path: Path, text: str, line: int, columns: tuple[str, ...]):
    """Comments, byte-order marks, blanks and odd line ends do not hide the header."""
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    file = TraceFile("x.csv", path)
    assert file.header_line == line
    assert file.columns() == columns


def test_other_encodings_are_refused(tmp_path: Path):
    """UTF-16, as spreadsheets export it, is named as what it is."""
    path = tmp_path / "x.csv"
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(TraceFormatError, match="UTF-16"):
        TraceFile("x.csv", path).columns()
