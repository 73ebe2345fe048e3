"""`yardmaster workload slice|split|scale|merge|sample`: workloads made of workloads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import (
    JsonOption,
    OutFileOption,
    OverwriteFileOption,
    QuietOption,
)

if TYPE_CHECKING:
    from yardmaster.model.workload import Workload

Source = Annotated[str, Parameter(help="A file (.parquet, .csv, .swf, .swf.gz) or a preset.")]
MOMENT = "a second, a time since second 0 (12h, 3d, 2w) or a date (2020-05-01, 2020-05-01T12:00)"


def slice_(
    source: Source,
    /,
    *,
    out: OutFileOption,
    from_: Annotated[
        str | None, Parameter(name="--from", help=f"Keep jobs submitted from here on: {MOMENT}.")
    ] = None,
    to: Annotated[str | None, Parameter(help="Keep jobs submitted before this moment.")] = None,
    tenants: Annotated[
        str | None, Parameter(help="Only these tenants, separated by commas.")
    ] = None,
    not_tenants: Annotated[str | None, Parameter(help="Without these tenants.")] = None,
    users: Annotated[str | None, Parameter(help="Only these users.")] = None,
    not_users: Annotated[str | None, Parameter(help="Without these users.")] = None,
    status: Annotated[str | None, Parameter(help="Only jobs that ended so: completed.")] = None,
    not_status: Annotated[str | None, Parameter(help="Without jobs that ended so.")] = None,
    min_gpus: Annotated[int | None, Parameter(help="Only jobs of at least so many GPUs.")] = None,
    max_gpus: Annotated[int | None, Parameter(help="Only jobs of at most so many GPUs.")] = None,
    restart_clock: Annotated[
        bool,
        Parameter(
            negative="",
            help="Make --from second 0 (without it: the first submission kept). Dates, where they"
            " are known, move along.",
        ),
    ] = False,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Keep a window of time [from, to), some tenants, users, endings or sizes."""
    from yardmaster.workloads.operations.slicing import sliced

    workload = _read(source, out, overwrite=overwrite, quiet=quiet)
    part = sliced(
        workload,
        start=from_,
        end=to,
        tenants=_names(tenants),
        not_tenants=_names(not_tenants),
        users=_names(users),
        not_users=_names(not_users),
        statuses=_names(status),
        not_statuses=_names(not_status),
        min_gpus=min_gpus,
        max_gpus=max_gpus,
        restart_clock=restart_clock,
    )
    _finish(part, workload.notes, out, overwrite=overwrite, json=json, quiet=quiet)


def split(
    source: Source,
    /,
    *,
    out: Annotated[
        Path,
        Parameter(name=["--out", "-o"], help="Folder for NAME-train.parquet and the others."),
    ],
    fractions: Annotated[
        str, Parameter(help="Share of each part: train, validation and test, or train and test.")
    ] = "0.6,0.2,0.2",
    by: Annotated[
        Literal["time", "jobs"], Parameter(help="Shares of the time, or of the jobs.")
    ] = "time",
    at: Annotated[
        str | None,
        Parameter(help=f"Borders instead of shares, separated by commas; each {MOMENT}."),
    ] = None,
    gap: Annotated[
        str, Parameter(help="Leave out jobs submitted less than this (1d) before a border.")
    ] = "0",
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Cut a workload by submit time into parts, the past before the future."""
    from yardmaster.cli.workload.inputs import load_source
    from yardmaster.workloads.files import refuse_to_replace
    from yardmaster.workloads.operations import splitting
    from yardmaster.workloads.tables import write_table

    workload = load_source(source, quiet=quiet)
    shares = [_number(text, "--fractions") for text in _names(fractions)]
    found = splitting.split(workload, fractions=shares, by=by, at=_names(at), gap=gap)
    out.mkdir(parents=True, exist_ok=True)
    files = {name: out / f"{_file_name(part.name)}.parquet" for name, part in found.parts.items()}
    for path in files.values():
        refuse_to_replace(path, overwrite=overwrite)
    for name, part in found.parts.items():
        write_table(part, files[name], overwrite=overwrite)
    if json:
        parts = {name: _facts(part, files[name]) for name, part in found.parts.items()}
        say_json({"parts": parts, "dropped": found.dropped})
        return
    for name, part in found.parts.items():
        _tell(part, workload.notes, files[name], quiet=quiet)
    if found.dropped and not quiet:
        remark(f"{found.dropped:,} jobs in the gaps belong to no part.")


def scale(
    source: Source,
    /,
    *,
    out: OutFileOption,
    load: Annotated[
        float | None, Parameter(help="Offered load to reach on --cluster: 0.9 is 90 %.")
    ] = None,
    cluster: Annotated[
        str | None,
        Parameter(
            name=["--cluster", "-c"],
            help="Cluster that --load refers to: a name, a .toml file, '8x A100:8' or 'pool:512'.",
        ),
    ] = None,
    factor: Annotated[
        float | None, Parameter(help="Submit the same jobs so many times as fast: 1.2.")
    ] = None,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Stretch or compress submissions in time; run times stay, dates are lost."""
    from yardmaster.errors import YardmasterError
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.workloads.operations.scaling import scaled_by, scaled_to_load

    workload = _read(source, out, overwrite=overwrite, quiet=quiet)
    if factor is not None and load is None and cluster is None:
        changed = scaled_by(workload, factor)
    elif factor is None and load is not None and cluster is not None:
        changed = scaled_to_load(workload, gpus=load_cluster(cluster).gpus, load=load)
    else:
        raise YardmasterError("Give either --load with --cluster, or --factor.")
    _finish(changed, workload.notes, out, overwrite=overwrite, json=json, quiet=quiet)


def merge(
    *sources: Source,
    out: OutFileOption,
    how: Annotated[
        Literal["clock", "dates", "append"],
        Parameter(
            help="All second 0s at once; every job on its own date; or one workload after the"
            " other, moved by whole weeks."
        ),
    ] = "clock",
    label_tenants: Annotated[
        bool, Parameter(negative="", help="Put the workload's name before each tenant: venus/vc1.")
    ] = False,
    label_users: Annotated[
        bool, Parameter(negative="", help="Put the workload's name before each user.")
    ] = False,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Put several workloads on one clock."""
    from yardmaster.cli.workload.inputs import load_source
    from yardmaster.workloads.files import refuse_to_replace
    from yardmaster.workloads.operations.merging import merged

    refuse_to_replace(out, overwrite=overwrite)
    workloads = [load_source(source, quiet=quiet) for source in sources]
    together = merged(workloads, how=how, label_tenants=label_tenants, label_users=label_users)
    _finish(together, together.notes[:-1], out, overwrite=overwrite, json=json, quiet=quiet)


def sample(
    source: Source,
    /,
    *,
    out: OutFileOption,
    method: Annotated[
        Literal["blocks", "thin", "jobs"],
        Parameter(
            help="blocks: whole weeks with replacement, keeps hours, weekdays and bursts; thin:"
            " some of the jobs, the load falls; jobs: the same arrivals, jobs with replacement."
        ),
    ] = "blocks",
    length: Annotated[
        str | None, Parameter(help="Length of the result for blocks: 8w (default: the source's).")
    ] = None,
    block: Annotated[str | None, Parameter(help="Length of a block: 1w (default), 2w, 1d.")] = None,
    keep: Annotated[
        float | None, Parameter(help="Probability of each job to be kept, for thin: 0.5.")
    ] = None,
    jobs: Annotated[int | None, Parameter(help="Exact number of jobs, for thin.")] = None,
    seed: Annotated[int, Parameter(help="Seed of the draws.")] = 0,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw a workload from this one at random; what each method keeps is in docs/workloads.md."""
    from yardmaster.workloads.operations import sampling

    _refuse_strangers(method, length=length, block=block, keep=keep, jobs=jobs)
    workload = _read(source, out, overwrite=overwrite, quiet=quiet)
    if method == "thin":
        drawn = sampling.thinned(workload, seed=seed, share=keep, jobs=jobs)
    elif method == "jobs":
        drawn = sampling.resampled_jobs(workload, seed=seed)
    else:
        drawn = sampling.resampled_blocks(
            workload, seed=seed, length=length, block="1w" if block is None else block
        )
    _finish(drawn, workload.notes, out, overwrite=overwrite, json=json, quiet=quiet)


OPTIONS_OF_METHODS = {"blocks": ("length", "block"), "thin": ("keep", "jobs"), "jobs": ()}


def _refuse_strangers(method: str, **options: object) -> None:
    """Complain about options that the method would ignore."""
    from yardmaster.errors import YardmasterError

    for name, value in options.items():
        if value is not None and name not in OPTIONS_OF_METHODS[method]:
            home = next(key for key, names in OPTIONS_OF_METHODS.items() if name in names)
            raise YardmasterError(f"--{name} goes with --method {home}, not with {method}.")


def _read(source: str, out: Path, *, overwrite: bool, quiet: bool) -> Workload:
    """Return the workload to work on, after a look at where the result goes."""
    from yardmaster.cli.workload.inputs import load_source
    from yardmaster.workloads.files import refuse_to_replace

    refuse_to_replace(out, overwrite=overwrite)
    return load_source(source, quiet=quiet)


def _finish(
    workload: Workload,
    old_notes: Sequence[str],
    out: Path,
    *,
    overwrite: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Write the result under the name of its file, and say what it is and what was done."""
    from yardmaster.workloads.files import stem
    from yardmaster.workloads.tables import write_table

    named = workload.renamed(stem(out))
    write_table(named, out, overwrite=overwrite)
    if json:
        say_json(_facts(named, out))
    else:
        _tell(named, old_notes, out, quiet=quiet)


def _facts(workload: Workload, path: Path) -> dict[str, Any]:
    return {
        "file": str(path),
        "jobs": len(workload),
        "first_submit_s": float(workload.submit_s[0]),
        "last_submit_s": float(workload.submit_s[-1]),
        "begins": workload.begins,
        "notes": list(workload.notes),
    }


def _tell(workload: Workload, old_notes: Sequence[str], path: Path, *, quiet: bool) -> None:
    from yardmaster.workloads.clock import in_words

    first, last = (in_words(workload, float(workload.submit_s[row])) for row in (0, -1))
    say(f"{path}: {len(workload):,} jobs submitted from {first} to {last}")
    for note in () if quiet else workload.notes[len(old_notes) :]:
        remark(f"  {note}")


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _number(text: str, option: str) -> float:
    from yardmaster.errors import YardmasterError

    try:
        return float(text)
    except ValueError:
        raise YardmasterError(
            f"{option} must be numbers such as 0.6,0.2,0.2; got {text!r}."
        ) from None


def _file_name(name: str) -> str:
    """Return a workload's name with everything replaced that a file name should not hold."""
    return "".join(mark if mark.isalnum() or mark in "-_." else "-" for mark in name)
