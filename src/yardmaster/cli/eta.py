"""`yardmaster eta`: when will my job start?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
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
    OutOption,
    OverwriteOption,
    QuietOption,
    SeedOption,
    WorkloadOption,
)
from yardmaster.errors import YardmasterError

if TYPE_CHECKING:
    from yardmaster.experiments.compare import Progress
    from yardmaster.experiments.eta import Forecast, Report
    from yardmaster.experiments.snapshot import Snapshot
    from yardmaster.model.cluster import Cluster
    from yardmaster.model.schedule import Schedule
    from yardmaster.model.workload import Workload


def eta(
    *,
    scheduler: Annotated[
        str | None,
        Parameter(
            name=["--scheduler", "-s"],
            help="Who decides; by default fifo+easy~estimate, or fifo+skip without estimates.",
        ),
    ] = None,
    workload: WorkloadOption = "venus-like",
    cluster: ClusterOption = "demo",
    now_s: Annotated[
        float | None,
        Parameter(help="Moment of asking on the workload's clock; by default a typical queue."),
    ] = None,
    snapshot: Annotated[
        Path | None,
        Parameter(
            help="Who runs and who waits, as CSV: job columns and start_s (or elapsed_s), empty"
            " for waiting jobs. A --workload file is then the past to learn from."
        ),
    ] = None,
    job: Annotated[
        tuple[str, ...], Parameter(help="Id of a waiting job; by default all of them.")
    ] = (),
    gpus: Annotated[int | None, Parameter(help="Ask for a new job with so many GPUs.")] = None,
    hours: Annotated[
        float | None, Parameter(help="Run time that the owner of the new job expects.")
    ] = None,
    simulations: Annotated[int, Parameter(help="Futures to simulate.")] = 200,
    calibrate: Annotated[
        int, Parameter(help="Earlier predictions to learn a correction from; 0 for none.")
    ] = 60,
    jobs: JobsOption = None,
    load: LoadOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    overwrite: OverwriteOption = False,
    format: FormatOption = "table",  # noqa: A002  (the option's name)
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict when waiting jobs (or a new one) will start, with an 80 % interval."""
    from yardmaster.cli.printing import print_table
    from yardmaster.experiments.question_directory import fresh_path
    from yardmaster.experiments.run_directory import new_run_directory
    from yardmaster.report.eta import eta_table, headline

    question = _Question(
        workload, cluster, scheduler, now_s, snapshot, job, gpus, hours, simulations, calibrate,
        jobs, load, seed,
    )  # fmt: skip
    started = datetime.now(UTC)
    path = out or fresh_path("eta", workload if snapshot is None else str(snapshot))
    with (
        new_run_directory(path, overwrite=overwrite) as folder,
        progress(quiet=quiet) as report,
    ):
        moment, forecast = question.answer(report)
        _write(folder, question, moment, forecast, started)
    style = "json" if json else format
    print_table(eta_table(forecast, title=_title(moment)), style)
    if not quiet and style == "table":
        remark(f"\n{headline(forecast)}\nReport: {path / 'report.html'}")


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, as it was typed."""

    workload: str
    cluster: str
    scheduler: str | None
    now_s: float | None
    snapshot: Path | None
    job: tuple[str, ...]
    gpus: int | None
    hours: float | None
    simulations: int
    calibrate: int
    jobs: int | None
    load: float | None
    seed: int

    def answer(self, progress: Progress | None) -> tuple[Snapshot, Forecast]:
        """Simulate up to now, then many futures; return the moment and the forecast."""
        import numpy as np

        from yardmaster.experiments.eta import predict
        from yardmaster.experiments.snapshot import with_newcomer
        from yardmaster.model.catalogue import load_cluster

        machines = load_cluster(self.cluster)
        moment, schedule = self._moment(machines)
        rows = None
        if self.gpus is not None:
            hours = float("nan") if self.hours is None else self.hours
            moment = with_newcomer(moment, gpus=self.gpus, estimate_s=hours * 3600.0)
            rows = np.array([len(moment.jobs) - 1])
        elif self.job:
            rows = np.sort([moment.row_of(name) for name in self.job])
        forecast = predict(
            moment, rows, simulations=self.simulations, seed=self.seed,
            report=_told(progress, "simulating futures"),
        )  # fmt: skip
        return moment, self._corrected(forecast, schedule, progress)

    def _moment(self, machines: Cluster) -> tuple[Snapshot, Schedule | None]:
        """Return the moment of asking, and what led to it where that was simulated."""
        from yardmaster.experiments.snapshot import snapshot_of, typical_moment
        from yardmaster.experiments.snapshot_file import read_snapshot
        from yardmaster.schedulers.simulation import simulate
        from yardmaster.workloads.sources import is_generated, load_workload

        if self.snapshot is not None:
            past = None if is_generated(self.workload) else load_workload(self.workload)
            named = self.scheduler or "fifo+skip"
            return read_snapshot(
                self.snapshot, machines, named, now_s=self.now_s, history=past
            ), None
        jobs = load_workload(
            self.workload, jobs=self.jobs, seed=self.seed, gpus=machines.gpus, load=self.load
        )
        schedule = simulate(jobs, machines, self._named(jobs), seed=self.seed)
        now_s = typical_moment(schedule) if self.now_s is None else self.now_s
        return snapshot_of(schedule, now_s), schedule

    def _named(self, jobs: Workload) -> str:
        default = "fifo+easy~estimate" if jobs.has_estimates else "fifo+skip"
        return self.scheduler or default

    def _corrected(
        self, forecast: Forecast, schedule: Schedule | None, progress: Progress | None
    ) -> Forecast:
        """Correct the forecast by earlier ones, or say why that is not possible."""
        from dataclasses import replace

        from yardmaster.experiments.eta_calibration import calibrate

        if schedule is None or not self.calibrate:
            note = "not corrected by earlier predictions: intervals may be too narrow"
            return replace(forecast, notes=(*forecast.notes, note))
        try:
            correction = calibrate(
                schedule, forecast.now_s, trials=self.calibrate, seed=self.seed,
                report=_told(progress, "learning from earlier predictions"),
            )  # fmt: skip
        except YardmasterError as error:
            return replace(forecast, notes=(*forecast.notes, f"not corrected: {error}"))
        return correction.applied(forecast)


def _told(progress: Progress | None, label: str) -> Report | None:
    if progress is None:
        return None
    return lambda done, total: progress(label, done, total)


def _title(moment: Snapshot) -> str:
    return (
        f"{moment.jobs.name} on {moment.cluster.name}, {moment.scheduler}, at second"
        f" {moment.now_s:.0f}: {len(moment.running)} jobs run, {len(moment.queued)} wait"
    )


def _write(
    folder: Path, question: _Question, moment: Snapshot, forecast: Forecast, started: datetime
) -> None:
    from yardmaster.experiments.question_directory import write_question
    from yardmaster.experiments.run_directory import command_line
    from yardmaster.report.eta import definitions, eta_figures, eta_table, headline
    from yardmaster.report.page import write_figures, write_page

    table, figures = eta_table(forecast, title=_title(moment)), eta_figures(forecast)
    options = asdict(question) | {"scheduler": moment.scheduler, "now_s": moment.now_s}
    write_question(
        folder,
        {"command": "eta"} | options,
        [moment.jobs],
        table.records,
        fingerprints={},
        notes=forecast.notes,
        started=started,
    )
    write_figures(folder / "figures", figures)
    write_page(
        folder / "report.html",
        eyebrow="When will it start?",
        lead=headline(forecast),
        table=table,
        figures=figures,
        definitions=definitions(),
        command=command_line(),
    )
