"""`yardmaster workload predict`: run-time estimates learnt from the past alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from yardmaster.cli.console import progress, remark
from yardmaster.cli.options import (
    ClusterOption,
    FormatOption,
    JobsOption,
    JsonOption,
    LoadOption,
    OverwriteFileOption,
    QuietOption,
    SeedOption,
)

if TYPE_CHECKING:
    from yardmaster.model.workload import Workload
    from yardmaster.report.tables import Table
    from yardmaster.report.values import Unit
    from yardmaster.workloads.prediction.history import Prediction


def predict(
    source: Annotated[
        str,
        Parameter(help="A preset (see `list workloads`) or a file: .swf, .swf.gz, .csv, .parquet."),
    ],
    /,
    *,
    method: Annotated[
        str,
        Parameter(
            name=["--method", "-m"],
            help="user, mean, median, last-two, history, or boosted (needs scikit-learn or"
            " LightGBM).",
        ),
    ] = "history",
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="Job table to write: .parquet (keeps everything) or .csv; by default only scores"
            " are printed.",
        ),
    ] = None,
    keep_existing: Annotated[
        bool, Parameter(negative="", help="Predict only jobs without an estimate.")
    ] = False,
    cluster: ClusterOption = "demo",
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    overwrite: OverwriteFileOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict run times at each submission, and say how all cheap methods would have done."""
    from yardmaster.cli.printing import print_table
    from yardmaster.model.catalogue import load_cluster
    from yardmaster.workloads.files import refuse_to_replace
    from yardmaster.workloads.prediction.methods import METHODS, filled, refuse_predictions
    from yardmaster.workloads.prediction.past import Past
    from yardmaster.workloads.sources import load_workload
    from yardmaster.workloads.tables import write_table

    chosen = METHODS[method]
    if out is not None:
        refuse_to_replace(out, overwrite=overwrite)
    workload = load_workload(
        source, jobs=jobs, seed=seed, gpus=load_cluster(cluster).gpus, load=load
    )
    refuse_predictions(workload)
    past = Past.of(workload)
    compared = [each for each in METHODS.values() if each.is_cheap or each is chosen]
    with progress(quiet=quiet, things="rounds of training") as report:
        predictions = {each.name: each.predict(past, report) for each in compared}
    result = filled(past, method, predictions[method], keep_existing=keep_existing)
    if out is not None:
        write_table(result, out, overwrite=overwrite)
    table = score_table(workload, method, predictions, result)
    print_table(table, "json" if json else format, quiet=quiet)
    if not quiet:
        remark("Nothing is written; -o names a file." if out is None else f"Job table: {out}")


def score_table(
    workload: Workload, chosen: str, predictions: Mapping[str, Prediction], result: Workload
) -> Table:
    """Return how each method's predictions came true, over all jobs and after the warm-up."""
    from dataclasses import asdict

    from yardmaster.report.tables import Cell, Column, Table
    from yardmaster.report.values import number, plain
    from yardmaster.workloads.prediction.scores import after_warm_up, score

    scores = [
        (part, name, asdict(score(workload, prediction, mask)))
        for part, mask in (("all", None), ("last half", after_warm_up(workload)))
        for name, prediction in predictions.items()
    ]
    columns = _columns()
    return Table(
        title=f"Run times predicted at submission: {plain(workload.name)}",
        columns=(
            Column("jobs", align="left"),
            Column("method", align="left"),
            *(Column(title, unit.symbol) for title, unit, _ in columns.values()),
        ),
        rows=tuple(
            tuple(
                Cell(text, "strong" if name == chosen else "")
                for text in (
                    part,
                    name,
                    *(
                        number(found[key], places, unit, signed=key == "bias")
                        for key, (_, unit, places) in columns.items()
                    ),
                )
            )
            for part, name, found in scores
        ),
        legend=_legend(list(predictions)),
        notes=tuple(plain(note) for note in result.notes),
        facts={
            "workload": plain(workload.name),
            "method": chosen,
            "rests_on": predictions[chosen].shares(),
        },
        records=tuple({"part": part, "method": name, **found} for part, name, found in scores),
    )


def _columns() -> dict[str, tuple[str, Unit, int]]:
    """Return title, unit and decimals of each figure of a score that is shown."""
    from yardmaster.report.values import PERCENT, PLAIN, Unit

    doublings = Unit("log2")
    return {
        "median_error": ("median |error|", doublings, 2),
        "bias": ("bias", doublings, 2),
        "within_2": ("within ×2", PERCENT, 0),
        "underestimated": ("too short", PERCENT, 0),
        "rank_correlation": ("rank correlation", PLAIN, 2),
        "cold": ("cold", PERCENT, 0),
    }


def _legend(names: list[str]) -> tuple[str, ...]:
    from yardmaster.workloads.prediction.methods import METHODS

    errors = "Error: log2(predicted / true), ±1 is twice or half; bias is its mean."
    cold = "Cold: predicted without what the method is meant to rest on."
    methods = "; ".join(f"{name}: {METHODS[name].about}" for name in names)
    return f"{errors} {cold}", f"{methods[0].upper()}{methods[1:]}."
