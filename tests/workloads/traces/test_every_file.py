"""Every public file at hand: found out, imported, accounted for, written and read back the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.errors import YardmasterError
from yardmaster.workloads.sources import load_workload
from yardmaster.workloads.tables import read_table
from yardmaster.workloads.traces.formats import import_trace, trace_formats
from yardmaster.workloads.traces.reading.trace_files import opened

TRACES = Path(__file__).resolve().parents[3] / ".." / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="needs ../shared/traces")

# file, or folder whose files are one trace → format
WORKLOADS = {
    "alibaba_dlrm2025/disaggregated_DLRM_trace.csv": "alibaba-dlrm-2025",
    "alibaba_openb2023/openb_pod_list_default.csv": "alibaba-openb-2023",
    "alibaba_openb2023/openb_pod_list_gpuspec33.csv": "alibaba-openb-2023",
    "alibaba_openb2023/openb_pod_list_multigpu50.csv": "alibaba-openb-2023",
    "google2011": "google-2011",
    "google2019_sample/slice.csv": "google-2019",
    "helios/venus_until_2020-07.csv": "helios-arrivals",
    "helios_venus_2vc/helios_venus_2vc_sept.csv": "fleetsim",
    "mit_supercloud/slurm-log-first1000.csv": "slurm",
    "philly/philly_pollux_until_2017-10.csv": "philly-pollux",
    "philly/philly_rfold_until_2017-10.csv": "philly-rfold",
    "slurm_jobcomp/jobcomp.log": "slurm",
    "swf/KTH-SP2-1996-2.1-cln.swf.gz": "swf",
    "swf/NASA-iPSC-1993-3.1-cln.swf.gz": "swf",
    "swf/SDSC-BLUE-2000-4.2-cln.swf.gz": "swf",
    "swf_lublin/lublin_256.swf": "swf",
}

# machines, quotas, headers, speeds, texts: no jobs in them
OTHERS = (
    "README.md",
    "alibaba_openb2023/openb_node_list_all_node.csv",
    "alibaba_openb2023/openb_node_list_gpu_node.csv",
    "alibaba_pai2020/pai_group_tag_table.header",
    "alibaba_pai2020/pai_instance_table.header",
    "alibaba_pai2020/pai_job_table.header",
    "alibaba_pai2020/pai_machine_metric.header",
    "alibaba_pai2020/pai_machine_spec.header",
    "alibaba_pai2020/pai_machine_spec.tar.gz",
    "alibaba_pai2020/pai_sensor_table.header",
    "alibaba_pai2020/pai_task_table.header",
    "alibaba_spot2026/node_info_df.csv",
    "generator_stats.json",
    "helios_quota/venus_cluster_gpu_number.csv",
    "perf_gavel/LICENSE",
    "perf_gavel/simulation_throughputs.json",
)


def names() -> list[str]:
    files = (path for path in TRACES.rglob("*") if path.is_file())
    return sorted(path.relative_to(TRACES).as_posix() for path in files)


def test_no_file_is_forgotten():
    """Each file is a workload, part of one, or known to be none."""
    known = (*WORKLOADS, *OTHERS)
    forgotten = [name for name in names() if not name.startswith(known)]
    assert forgotten == []


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_imports_by_itself(name, tmp_path):
    """Without a word from the user: format, sums of the account, and the same jobs from Parquet."""
    found = import_trace([TRACES / name])
    account = found.account
    assert account.format == WORKLOADS[name]
    for stage in account.stages:
        assert stage.read == stage.kept + sum(entry.count for entry in stage.dropped)
        assert all(entry.count > 0 and entry.reason for entry in stage.dropped)
    jobs = found.workload()
    assert account.jobs == account.stages[-1].kept == found.frame.height == len(jobs) > 0
    assert all(count > 0 for count in (*account.censored.values(), *account.changed.values()))
    found.write(tmp_path / "jobs.parquet", overwrite=False)
    again = read_table(tmp_path / "jobs.parquet")
    assert again.fingerprint() == jobs.fingerprint()
    assert (again.begins, again.notes) == (jobs.begins, jobs.notes)


@pytest.mark.parametrize("name", OTHERS)
def test_files_without_jobs_are_refused_with_a_message(name):
    """The user learns which file is no workload, in words."""
    with pytest.raises(YardmasterError) as caught:
        import_trace([TRACES / name])
    assert name.rpartition("/")[2] in str(caught.value)


def test_no_file_is_claimed_by_two_formats():
    """Whatever the order in which formats are tried, each file has at most one, the right one."""
    wrong = []
    for name in names():
        with opened([TRACES / name]) as files:
            claimed = [
                entry.name
                for entry in trace_formats().values()
                if any(entry.recognises(file) for file in files)
            ]
        folder = name.partition("/")[0]
        expected = WORKLOADS.get(name, WORKLOADS.get(folder))
        if len(claimed) > 1 or (expected and claimed != [expected]):
            wrong.append((name, claimed))
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    ["philly/philly_pollux_until_2017-10.csv", "helios_venus_2vc/helios_venus_2vc_sept.csv"],
)
def test_traces_are_workloads_as_they_are(name):
    """A trace can be simulated without importing it first: same jobs, with the account as notes."""
    jobs = load_workload(TRACES / name)
    found = import_trace([TRACES / name])
    assert jobs.fingerprint() == found.workload().fingerprint()
    assert jobs.notes == found.account.notes()
