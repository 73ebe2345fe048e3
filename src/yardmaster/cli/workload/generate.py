"""`yardmaster workload generate`: a workload from a preset, a recipe or options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from yardmaster.cli.console import remark, say, say_json
from yardmaster.cli.options import JsonOption, OverwriteFileOption, QuietOption

if TYPE_CHECKING:
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.workload import Workload
    from yardmaster.workloads.recipes.recipe import Recipe

COMMAND = "yardmaster workload generate"


def generate(
    source: Annotated[
        str | None,
        Parameter(
            help="A preset, perhaps with options (rlmetadqn:workload=bursty,intensity=high; see"
            " `list workloads`), or a recipe file (.toml). Without: Poisson arrivals, log-normal"
            " run times, 1, 2, 4 or 8 GPUs."
        ),
    ] = None,
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Job table to write: .parquet or .csv."),
    ] = None,
    jobs: Annotated[
        int | None, Parameter(help="Number of jobs (default the recipe's, else 2000).")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of every random number.")] = 0,
    load: Annotated[
        float | None, Parameter(help="Offered load; needs --cluster (default 0.9 with --cluster).")
    ] = None,
    cluster: Annotated[
        str | None,
        Parameter(name=["--cluster", "-c"], help="Cluster the load refers to; bounds job sizes."),
    ] = None,
    rate: Annotated[float | None, Parameter(help="Mean rate in jobs per hour.")] = None,
    arrivals: Annotated[
        str | None,
        Parameter(help="When jobs are submitted: alternating:busy=3,quiet=0.3,every_s=300."),
    ] = None,
    sizes: Annotated[str | None, Parameter(help="GPUs: choice:values=1/2/4,weights=5/3/2.")] = None,
    durations: Annotated[
        str | None, Parameter(help="Seconds: lognormal:median=600,sigma=1.7.")
    ] = None,
    priorities: Annotated[str | None, Parameter(help="classes:shares=0.7/0.25/0.05.")] = None,
    estimates: Annotated[str | None, Parameter(help="noisy:sigma=0.5, exact, none, ….")] = None,
    deadlines: Annotated[str | None, Parameter(help="slack:low=1.2,high=2,share=0.5.")] = None,
    tenants: Annotated[str | None, Parameter(help="teams:tenants=4, users:names=ann/bob.")] = None,
    demands: Annotated[str | None, Parameter(help="kinds=measured,elastic=0.3,cores=4.")] = None,
    print_recipe: Annotated[
        bool, Parameter(negative="", help="Print the whole as a recipe (TOML).")
    ] = False,
    overwrite: OverwriteFileOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Generate a workload; every process and its parameters are in docs/generators.md."""
    from yardmaster.errors import YardmasterError
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.workloads.files import refuse_to_replace

    if out is not None:
        refuse_to_replace(out, overwrite=overwrite)
    elif not print_recipe:
        raise YardmasterError("Say where to write the jobs: -o jobs.parquet; or --print-recipe.")
    machines = None if cluster is None else load_cluster(cluster)
    parts = {
        "arrivals": arrivals, "sizes": sizes, "durations": durations, "priorities": priorities,
        "estimates": estimates, "deadlines": deadlines, "tenants": tenants, "demands": demands,
        "jobs": jobs, "load": load, "rate_per_h": rate,
    }  # fmt: skip
    recipe = _recipe(source, {key: value for key, value in parts.items() if value is not None})
    recipe = _completed(recipe, machines)
    if out is not None:
        workload = _written(recipe, seed, machines, out, overwrite=overwrite)
        summary = _summary(workload, machines) | {"file": str(out)}
        _report(summary, workload, json=json, quiet=quiet, aside=print_recipe)
    if print_recipe:
        from yardmaster.workloads.recipes.document import to_toml

        say(to_toml(recipe))


def _recipe(source: str | None, options: dict[str, Any]) -> Recipe:
    """Read the preset or the file with the options in place of what it says."""
    from yardmaster.workloads.recipes.document import is_recipe_file, read_recipe, recipe_from

    if source is not None and is_recipe_file(source):
        return read_recipe(Path(source), options)
    if source is None:
        return recipe_from({}, COMMAND, options)
    return recipe_from({"preset": source}, COMMAND, options)


def _completed(recipe: Recipe, machines: Cluster | None) -> Recipe:
    """Fill in how many jobs and how fast where nobody said."""
    from dataclasses import replace

    from yardmaster.errors import YardmasterError
    from yardmaster.workloads.sources import DEFAULT_JOBS, DEFAULT_LOAD

    if not recipe.has_pace and machines is None:
        raise YardmasterError(
            "How fast are jobs submitted? Give --load with --cluster, or --rate in jobs per hour."
        )
    if recipe.load is not None and machines is None:
        raise YardmasterError("A load refers to a cluster: give --cluster, or --rate instead.")
    if not recipe.has_pace:
        recipe = replace(recipe, load=DEFAULT_LOAD)
    return recipe if recipe.has_number else replace(recipe, jobs=DEFAULT_JOBS)


def _written(
    recipe: Recipe, seed: int, machines: Cluster | None, out: Path, *, overwrite: bool
) -> Workload:
    from yardmaster.workloads.synthetic import generate as generate_workload
    from yardmaster.workloads.tables import write_table

    gpus = None if machines is None else machines.gpus
    workload = generate_workload(recipe, seed=seed, gpus=gpus)
    write_table(workload, out, overwrite=overwrite)
    return workload


def _summary(workload: Workload, machines: Cluster | None) -> dict[str, Any]:
    """Return the few numbers that show whether this is what was meant."""
    import numpy as np

    gpus = workload.gpus * (workload.milli_gpu / 1000)
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    summary: dict[str, Any] = {
        "name": workload.name,
        "jobs": len(workload),
        "span_s": span_s,
        "jobs_per_h": len(workload) / span_s * 3600 if span_s else None,
        "gpus_mean": float(gpus.mean()),
        "gpus_max": int(workload.gpus.max()),
        "duration_median_s": float(np.median(workload.duration_s)),
        "duration_mean_s": float(workload.duration_s.mean()),
        "work_gpu_h": workload.work_gpu_s / 3600,
    }
    if machines is not None:
        summary |= {"load": workload.load(machines.gpus), "cluster_gpus": machines.gpus}
    return summary | {"fingerprint": workload.fingerprint()}


def _report(
    summary: dict[str, Any], workload: Workload, *, json: bool, quiet: bool, aside: bool
) -> None:
    """Print the summary; on standard error where a recipe is the result."""
    if json and not aside:
        say_json(summary | {"notes": list(workload.notes)})
        return
    if not quiet or not aside:
        (remark if aside else say)(_words(summary))
    if not quiet:
        for note in workload.notes:
            remark(f"Note: {note}")


def _words(summary: dict[str, Any]) -> str:
    rate = summary["jobs_per_h"]
    span = f"over {_figure(summary['span_s'] / 3600)} h" if rate else "at one instant"
    arrivals = f"{summary['file']}: {summary['jobs']:,} jobs {span}"
    if rate:
        arrivals += f", {_figure(rate)} jobs/h"
    sizes = f"sizes: mean {_figure(summary['gpus_mean'])}, largest {summary['gpus_max']:,} GPUs"
    median_s, mean_s = summary["duration_median_s"], summary["duration_mean_s"]
    run_times = f"run times: median {_figure(median_s)} s, mean {_figure(mean_s)} s"
    work = f"work: {_figure(summary['work_gpu_h'])} GPU-hours"
    if "load" in summary:
        work += f", load {summary['load']:.4g} on {summary['cluster_gpus']:,} GPUs"
    return f"{arrivals}\n{sizes}\n{run_times}\n{work}"


def _figure(value: float) -> str:
    """Write four digits, or all before the point where there are more."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
