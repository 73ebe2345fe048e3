"""The command line: one thin file per command, loaded only when it runs."""

from __future__ import annotations

import sys

from cyclopts import App

from yardmaster.cli.console import complain
from yardmaster.errors import YardmasterError

app = App(
    name="yardmaster",
    help="Simulate and compare job schedulers for GPU clusters.",
    version_flags=["--version"],
)
app.command(
    "yardmaster.cli.demo:demo",
    name="demo",
    help="Compare schedulers on a built-in workload and write a report.",
)
app.command(
    "yardmaster.cli.simulate:simulate", name="simulate", help="Run one scheduler on one workload."
)
app.command(
    "yardmaster.cli.compare:compare",
    name="compare",
    help="Run several schedulers on the same jobs, with paired intervals.",
)
app.command(
    "yardmaster.cli.whatif:whatif",
    name="whatif",
    help="Answer capacity questions: other nodes, other quotas, more load.",
)
app.command(
    "yardmaster.cli.eta:eta",
    name="eta",
    help="Predict when waiting jobs will start.",
)
app.command("yardmaster.cli.train:train", name="train", help="Let a policy learn to schedule.")
app.command(
    "yardmaster.cli.evaluate:evaluate",
    name="evaluate",
    help="Judge trained policies against schedulers, on episodes they have not seen.",
)
app.command(
    "yardmaster.cli.tune:tune",
    name="tune",
    help="Search for good settings of a learner, over many short trainings.",
)
app.command(
    "yardmaster.cli.dashboard:dashboard",
    name="dashboard",
    help="Look at runs in the browser: schedules, comparisons, training as it goes on.",
)
app.command(
    "yardmaster.cli.rerun:rerun",
    name="rerun",
    help="Make a run again and check that it is the same, byte for byte.",
)
app.command(
    "yardmaster.cli.listing:listing",
    name="list",
    help="Show every name that can be used: orders, clusters, workloads, kinds, metrics, …",
)
app.command(
    "yardmaster.cli.check:check",
    name="check",
    help="Check a plug-in of your own rule by rule, or say the rules of a cluster in words.",
)
app.command(
    "yardmaster.cli.doctor:doctor", name="doctor", help="Say what this machine can do, and test it."
)
app.command(
    "yardmaster.cli.bench:bench",
    name="bench",
    help="Measure replay speed against plain Python and SimPy.",
)

workload = App(name="workload", help="Import, describe, cut, mix and generate workloads.")
for _name, _function, _help in (
    ("import", "importing:import_", "Turn a trace in its publisher's format into a job table."),
    ("list", "listing:list_", "Show the trace formats that can be imported, and the presets."),
    ("describe", "describe:describe", "Say what is in a workload: load, arrivals, sizes, users."),
    ("slice", "transform:slice_", "Keep a window of time, some tenants or users."),
    ("split", "transform:split", "Cut a workload by time into train, validation and test parts."),
    ("scale", "transform:scale", "Stretch submissions in time to offer another load."),
    ("merge", "transform:merge", "Put several workloads on one clock."),
    ("sample", "transform:sample", "Draw a workload of another length from this one."),
    ("generate", "generate:generate", "Generate a workload from a preset, a recipe or options."),
    ("predict", "predict:predict", "Give jobs run-time estimates learnt from the past alone."),
    ("fidelity", "fidelity:fidelity", "Compare simulated waits with those that were recorded."),
):
    workload.command(f"yardmaster.cli.workload.{_function}", name=_name, help=_help)
app.command(workload)
cluster = App(name="cluster", help="Import machine lists as clusters.")
cluster.command(
    "yardmaster.cli.cluster.importing:import_",
    name="import",
    help="Turn a publisher's list of machines into a cluster file.",
)
app.command(cluster)
experiment = App(name="experiment", help="Run many regimes, schedulers and seeds; never lost.")
for _name, _help in (
    ("matrix", "Run schedulers on 48 regimes: shapes × intensities × GPUs, paired seeds."),
    ("robustness", "Run schedulers on disturbed regimes, and on regimes that change."),
    ("hard", "Run schedulers where no single heuristic wins."),
    ("run", "Run every combination of the factors in a document of your own."),
):
    experiment.command(f"yardmaster.cli.experiment.running:{_name}", name=_name, help=_help)
for _name, _help in (
    ("ablation", "Train a chooser without each of its parts, and say what each is worth."),
    ("lookahead", "Train policies that see more or less of GPUs to come, by architecture."),
):
    experiment.command(f"yardmaster.cli.experiment.training:{_name}", name=_name, help=_help)
app.command(experiment)
app.command(
    "yardmaster.cli.report:report",
    name="report",
    help="Write every table and figure of an experiment, from its folder alone.",
)
app.command(
    "yardmaster.cli.export:export",
    name="export",
    help="Write a run's schedule for other viewers, such as Perfetto.",
)
live = App(name="live", help="Decide on real machines: one node, a Ray cluster, or beside a Slurm.")
for _name, _function, _help in (
    ("local", "local:local", "Run a workload of real commands on this machine."),
    ("ray", "ray:ray", "Run a workload of real commands on a Ray cluster."),
    ("replay", "replay:replay", "Simulate a live run again: predicted against measured."),
    ("slurm", "slurm:slurm", "Decide beside a running Slurm; by default touch nothing."),
    ("restore", "restore:restore", "Take our factors away after a crash."),
    ("why", "why:why", "Say why a job does not start."),
    ("shadow-report", "shadow_report:shadow_report", "Say what would have been gained."),
    ("history", "history:history", "Read the last days of a Slurm, to simulate them."),
    ("minicluster", "minicluster:minicluster", "Start or remove a small Slurm to try things on."),
):
    live.command(f"yardmaster.cli.live.{_function}", name=_name, help=_help)
app.command(live)
app.command(
    "yardmaster.cli.serve:serve",
    name="serve",
    help="Answer other schedulers: a state in, ranked jobs out, over local HTTP.",
)
app.command(
    "yardmaster.cli.completion:completion",
    name="completion",
    help="Print a script that lets bash, zsh or fish complete commands and options.",
)


def main() -> None:
    """Run a command; mistakes of the user end with a message and exit code 2."""
    try:
        app()
    except YardmasterError as error:
        complain(str(error))
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        sys.exit(2)
    except KeyboardInterrupt:
        complain("Interrupted; nothing was left half written.")
        sys.exit(130)
