"""Which file is a list of machines, and which list is meant."""

from pathlib import Path

import pytest

from yardmaster.errors import (
    InvalidClusterError,
    InvalidWorkloadError,
    TraceFormatError,
    UnknownNameError,
)
from yardmaster.workloads.machines.formats import (
    import_machines,
    is_machine_list,
    machine_formats,
)
from yardmaster.workloads.traces.formats import trace_formats
from yardmaster.workloads.traces.reading.trace_files import opened

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
LISTS = {
    "openb_node_list_all_node.csv",
    "openb_node_list_gpu_node.csv",
    "pai_machine_spec.csv",
    "node_info_df.csv",
    "venus_cluster_gpu_number.csv",
}
"""The machine lists among the published files."""

OPENB = "sn,cpu_milli,memory_mib,gpu,model\na,1000,1024,1,T4\n"


@pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")
def test_machine_lists_are_told_from_traces():
    """Of all published files exactly the machine lists are such, and no trace format wants them."""
    with opened([TRACES]) as files:
        assert {file.short_name for file in files if is_machine_list(file)} == LISTS
        for file in files:
            if is_machine_list(file):
                takers = [
                    entry.name for entry in trace_formats().values() if entry.recognises(file)
                ]
                assert takers == []


def test_every_format_explains_itself():
    """Names are unique, and each format says what it reads and where it comes from."""
    formats = machine_formats()
    assert len(formats) == 6
    for name, entry in formats.items():
        assert entry.name == name
        assert len(entry.reads) > 5
        assert len(entry.source) > 10


def test_one_list_must_be_chosen(tmp_path: Path):
    """Several lists in a folder are a question; --only answers it."""
    (tmp_path / "one.csv").write_text(OPENB)
    (tmp_path / "two.csv").write_text(OPENB + "b,1000,1024,1,T4\n")
    (tmp_path / "readme.txt").write_text("hello\n")
    with pytest.raises(InvalidClusterError, match="2 lists of machines; choose with --only"):
        import_machines([tmp_path])
    assert import_machines([tmp_path], only="two").cluster.nodes == 2


def test_files_that_list_no_machines_are_refused(tmp_path: Path):
    """The message says which lists are known; a named format says what it misses."""
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TraceFormatError, match=r"no list of machines.*openb_node_list"):
        import_machines([path])
    with pytest.raises(TraceFormatError, match="no column 'sn'"):
        import_machines([path], "alibaba-openb-2023")


def test_names_and_files_that_are_not_there(tmp_path: Path):
    """Misspelt formats and missing files get the usual messages."""
    with pytest.raises(UnknownNameError, match="Did you mean 'helios'"):
        import_machines([tmp_path], "helio")
    with pytest.raises(InvalidWorkloadError, match="No such file"):
        import_machines([tmp_path / "nothing.csv"])
    with pytest.raises(InvalidClusterError, match="Which file"):
        import_machines([])
