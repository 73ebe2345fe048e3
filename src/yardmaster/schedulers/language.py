"""Schedulers by name: `order+discipline@placement~run times`.

`sjf+easy@pack` is the order `sjf` under the discipline `easy`, placed by `pack`. All but the order
may be left out. `~estimate` makes everything in the scheduler that reads run times (the order, the
reservations of `easy` and `conservative`, what moving or resizing is worth) read the jobs'
estimates instead of their true durations.

A trained policy is an order too: `policy:NAME` runs one that comes with Yardmaster, `policy:PATH`
the portable file that `train` writes, each with the discipline it was trained in;
`policy:PATH@spread` places its jobs differently.

An order may also be a user's own: `module:name` or `path/to/file.py:name`, where the name is a
function registered with `@order`, or any function of one or two arguments.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from yardmaster.engine.state import Discipline, Placement
from yardmaster.errors import UnknownNameError, YardmasterError
from yardmaster.names import Registry, did_you_mean, unknown
from yardmaster.schedulers.neighbours import importing_beside
from yardmaster.schedulers.orders import ORDERS, Order
from yardmaster.schedulers.views import Information, RunTimes

if TYPE_CHECKING:
    from yardmaster.schedulers.learned.policy import LearnedPolicy
    from yardmaster.schedulers.meta.choosers import Chooser

DISCIPLINES: Registry[str] = Registry("discipline")
for _name, _meaning in (
    ("strict", "nobody starts before the first in order"),
    ("skip", "jobs that do not fit are passed over"),
    ("commit", "the first in order is chosen once, and blocks until it fits"),
    ("easy", "others may start if they cannot delay the first (shadow time and extra GPUs)"),
    ("conservative", "others may start if they cannot delay anybody"),
    ("preemptive", "jobs stop those behind them in order, the ones that lose least work first"),
    ("timeslice", "jobs take turns: who has run for a quantum makes room for who waits"),
    ("elastic", "as skip; elastic jobs shrink to let others in, and grow when it pays"),
    (
        "defrag",
        "as skip; running jobs are moved together for a gang where that pays",
    ),
):
    DISCIPLINES.add(_name, _meaning)

PLACEMENTS: Registry[str] = Registry("placement")
for _name, _meaning in (
    ("pack", "the node with the fewest free GPUs that holds the job"),
    ("first", "the first node that holds the job"),
    ("spread", "the node with the most free GPUs"),
    ("random", "any node that holds the job"),
    ("tier", "as few nodes as possible, else one more without more fragments; lowest numbers"),
    ("defrag", "as tier, the nodes that leave fewest nodes partly used, then least stranded"),
    ("loadbalance", "as tier, the nodes that leave the use of nodes most even"),
    ("fgd", "the node where least becomes unusable for jobs like the workload's (FGD, ATC 2023)"),
    ("power", "the node with the fewest added watts per work done"),
    ("fastest", "the node whose GPU type runs this job fastest, tightest first"),
    ("milp", "nodes for up to 64 waiting jobs at once, by integer programming; with skip only"),
):
    PLACEMENTS.add(_name, _meaning)

POLICY_PREFIX = "policy:"
META_PREFIX = "meta:"
BANDIT_PREFIX = "bandit:"

FILE_COPIES: dict[str, Path] = {}
"""Path of a user's file as written → the copy to load instead: of runs made again or elsewhere."""

READS_RUN_TIMES = frozenset(
    {Discipline.EASY, Discipline.CONSERVATIVE, Discipline.ELASTIC, Discipline.DEFRAG}
)
"""Disciplines that ask how long jobs will run: to promise starts, or whether a change pays."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """An order, a discipline, a placement, and where run times come from."""

    order: Order
    discipline: Discipline
    placement: Placement
    run_times: RunTimes = RunTimes.TRUE
    solves: bool = False
    """Whether an integer program chooses the nodes of many jobs at once (`milp`)."""
    policy: LearnedPolicy | None = field(default=None, compare=False)
    """A trained policy that picks the jobs, in place of keys."""
    chooser: Chooser | None = field(default=None, compare=False)
    """Who changes the scheduler while jobs run, in place of keys."""

    @property
    def reads_run_times(self) -> bool:
        """Whether any part of the scheduler reads run times of waiting or running jobs."""
        if self.policy is not None or self.chooser is not None:
            return self.order.reads_run_time
        return self.order.reads_run_time or self.discipline in READS_RUN_TIMES

    @property
    def information(self) -> Information:
        """What the scheduler knows of run times before jobs have run."""
        if not self.reads_run_times:
            return Information.BLIND
        if self.run_times is RunTimes.TRUE:
            return Information.CLAIRVOYANT
        return Information.ESTIMATE_BASED

    def __str__(self) -> str:
        if self.chooser is not None:
            return self.order.name
        if self.policy is not None:
            own = self.placement.name.lower()
            return self.order.name + ("" if own == self.policy.sight.placement else f"@{own}")
        name = f"{self.order.name}+{self.discipline.name.lower()}"
        if self.solves:
            name += "@milp"
        elif self.placement is not Placement.PACK:
            name += f"@{self.placement.name.lower()}"
        return name + ("~estimate" if self.run_times is RunTimes.ESTIMATE else "")


def parse_scheduler(text: str | Scheduler | Order) -> Scheduler:
    """Turn a name in the scheduler language into a scheduler.

    Raises:
        UnknownNameError: if a part is unknown, with the nearest known names.
        YardmasterError: if the text is not of the form order+discipline@placement~run times.
    """
    if isinstance(text, Scheduler):
        return text
    if isinstance(text, Order):
        return Scheduler(text, _discipline(text.discipline), Placement.PACK)
    if text.strip().startswith(POLICY_PREFIX):
        return _learned(text.strip())
    if text.strip().startswith((META_PREFIX, BANDIT_PREFIX)):
        return _choosing(text.strip())
    # A user's own order begins with a path, in which the signs mean nothing.
    place, colon, rest = text.strip().rpartition(":")
    rest, _, run_times = rest.partition("~")
    run_times, _, late_placement = run_times.partition("@")
    rest, _, placement = rest.partition("@")
    order_name, _, discipline = rest.partition("+")
    if not order_name or "+" in discipline:
        raise YardmasterError(
            f"Cannot read scheduler {text!r}: write ORDER+DISCIPLINE@PLACEMENT, such as"
            " 'sjf+easy@pack'."
        )
    order = find_order(place + colon + order_name)
    placement = _known(PLACEMENTS, placement or late_placement or "pack")
    solves = placement == "milp"
    return Scheduler(
        order=order,
        discipline=_discipline(discipline or ("skip" if solves else order.discipline)),
        placement=Placement.PACK if solves else Placement[placement.upper()],
        run_times=_run_times(run_times),
        solves=solves,
    )


def _learned(text: str) -> Scheduler:
    """Read `policy:NAME`, `policy:PATH` or either with `@PLACEMENT`."""
    from yardmaster.schedulers.learned.policy import load_policy

    name, placement = _policy_parts(text)
    policy = load_policy(policy_path(name))
    written = text.partition("@")[0] if placement else text
    order = Order(
        written,
        _no_keys,
        reads_run_time=policy.sight.knows_run_times,
        formula="the picks of a trained policy",
        discipline="skip",
    )
    is_estimate = policy.sight.information == "estimate"
    return Scheduler(
        order=order,
        discipline=Discipline.SKIP,
        placement=Placement[(placement or policy.sight.placement).upper()],
        run_times=RunTimes.ESTIMATE if is_estimate else RunTimes.TRUE,
        policy=policy,
    )


def _choosing(text: str) -> Scheduler:
    """Read `meta:NAME`, `meta:PATH`, `bandit:NAME` or `bandit:NAME=SCHEDULER/SCHEDULER/…`."""
    from yardmaster.schedulers.meta.choosers import bandit_chooser, load_chooser
    from yardmaster.schedulers.meta.menu import members_of, run_times_of

    chooser: Chooser
    if text.startswith(META_PREFIX):
        name = text.removeprefix(META_PREFIX)
        chooser = load_chooser(name, FILE_COPIES.get(_policy_file(name)))
    else:
        chooser = bandit_chooser(text.removeprefix(BANDIT_PREFIX))
    members = members_of(chooser.sight.menu)
    knows = chooser.sight.knows_run_times or any(one.reads_run_times for one in members)
    order = Order(
        text,
        _no_keys,
        reads_run_time=knows,
        formula="the scheduler that a chooser puts to work",
        discipline="skip",
    )
    return Scheduler(
        order=order,
        discipline=Discipline.SKIP,
        placement=members[0].placement,
        run_times=run_times_of(members, chooser.sight.information),
        chooser=chooser,
    )


def _policy_parts(text: str) -> tuple[str, str]:
    """Return the name or path of a policy and the placement written behind it, if any."""
    name = text.removeprefix(POLICY_PREFIX)
    head, at, tail = name.rpartition("@")
    if at and tail in PLACEMENTS:
        if tail == "milp":
            raise YardmasterError(f"Cannot read {text!r}: a policy picks jobs one at a time.")
        return head, tail
    head, tilde, tail = name.rpartition("~")
    if tilde and head:
        raise YardmasterError(
            f"Cannot read {text!r}: a trained policy reads the run times it was trained with; leave"
            f" out ~{tail}, or train one with `yardmaster train --information estimate`."
        )
    head, plus, tail = name.rpartition("+")
    if plus and tail in DISCIPLINES:
        raise YardmasterError(
            f"Cannot read {text!r}: a trained policy decides itself what happens when a job does"
            f" not fit; leave out +{tail}."
        )
    return name, ""


def policy_path(name: str) -> Path:
    """Return where a policy is: one that comes along, the copy in use, or the user's own file.

    Raises:
        UnknownNameError: if the name is none of those that come along, and no folder either.
    """
    from yardmaster.schedulers.learned.catalogue import shipped_names, shipped_path

    shipped = shipped_path(name)
    if shipped is not None:
        return shipped
    file = _policy_file(name)
    path = FILE_COPIES.get(file, Path(file).expanduser())
    is_path = "/" in name or name.endswith(".npz") or path.parent.is_dir()
    if not is_path and shipped_names():
        raise unknown("policy", name, shipped_names())
    return path


def _policy_file(path: str) -> str:
    """Return the file that is meant: a folder of `train` stands for the best policy in it."""
    return path if path.endswith(".npz") else f"{path.rstrip('/')}/policy.npz"


def _no_keys(_: object) -> object:
    raise YardmasterError("A trained policy decides by itself and has no keys.")


def _discipline(name: str) -> Discipline:
    return Discipline[_known(DISCIPLINES, name).upper()]


def _known(registry: Registry[str], name: str) -> str:
    registry[name]  # raises with suggestions
    return name


def _run_times(name: str) -> RunTimes:
    known = [choice.value for choice in RunTimes]
    if name and name not in known:
        raise unknown("source of run times", name, known)
    return RunTimes(name or RunTimes.TRUE)


def find_order(name: str) -> Order:
    """Return a registered order, or load a user's own from `module:name` or `file.py:name`."""
    if ":" not in name:
        return ORDERS[name]
    place, _, attribute = name.rpartition(":")
    module = load_module(place, name)
    found = getattr(module, attribute, None)
    for known in ORDERS.values():
        is_named_here = known.name == attribute and known.function.__module__ == module.__name__
        if is_named_here or (found is not None and known.function is found):
            # Keep the full name: results must say where the order came from.
            return replace(known, name=name)
    if found is None:
        hint = did_you_mean(attribute, vars(module))
        raise UnknownNameError(f"{place} has no order {attribute!r}.{hint}")
    return replace(found, name=name) if isinstance(found, Order) else order_of(found, name)


def order_of(found: object, name: str) -> Order:
    """Turn a function of (jobs) or (jobs, now), or a class of such objects, into an order.

    Raises:
        YardmasterError: if it is nothing of the kind.
    """
    try:
        function = found() if isinstance(found, type) else found
    except Exception as error:
        raise YardmasterError(
            f"Order {name!r}: cannot make one: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise UnknownNameError(f"{name} is not an order: it is a {type(function).__name__}.")
    if not _takes_jobs(function):
        raise YardmasterError(f"Order {name!r} must be a function of (jobs) or of (jobs, now).")
    reads_run_time = bool(getattr(function, "reads_run_time", False))
    formula = (getattr(found, "__doc__", None) or "").strip().splitlines()
    return Order(name, function, reads_run_time, formula[0] if formula else "")


def _takes_jobs(function: Callable[..., object]) -> bool:
    """Whether the function can be called with the jobs, or with the jobs and the time."""
    try:
        parameters = inspect.signature(function).parameters
        inspect.signature(function).bind(*range(min(len(parameters), 2)))
    except (TypeError, ValueError):
        return False
    return len(parameters) > 0


def load_module(place: str, name: str) -> ModuleType:
    """Import a module by dotted name or from a file, turning failures into clear errors."""
    try:
        if place.endswith(".py"):
            return _load_file(FILE_COPIES.get(place, Path(place).expanduser()))
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except FileNotFoundError:
        raise UnknownNameError(f"Order {name!r}: there is no file {place}.") from None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise UnknownNameError(f"Order {name!r}: there is no module {place!r}.") from None
        raise YardmasterError(f"Order {name!r}: cannot import {place}: {error}") from error
    except Exception as error:
        raise YardmasterError(
            f"Order {name!r}: cannot import {place}: {type(error).__name__}: {error}"
        ) from error


def file_names(schedulers: Iterable[str]) -> list[str]:
    """Return the paths of users' orders and policies that the schedulers name, as written."""
    places = [_file_named(text.strip()) for text in schedulers]
    return list(dict.fromkeys(place for place in places if place.endswith((".py", ".npz"))))


def _file_named(text: str) -> str:
    """Return the path of the file that a scheduler's name holds, as written; else anything."""
    if text.startswith(POLICY_PREFIX):
        from yardmaster.schedulers.learned.catalogue import shipped_path

        name = _policy_parts(text)[0]
        return "" if shipped_path(name) else _policy_file(name)
    if text.startswith(META_PREFIX):
        from yardmaster.schedulers.meta.choosers import shipped_names

        name = text.removeprefix(META_PREFIX)
        return "" if name in shipped_names() else _policy_file(name)
    return "" if text.startswith(BANDIT_PREFIX) else text.rpartition(":")[0]


def order_files(schedulers: Iterable[str]) -> dict[str, Path]:
    """Return where each of those files is: the copy in use, or the file itself."""
    return {
        place: FILE_COPIES.get(place, Path(place).expanduser()) for place in file_names(schedulers)
    }


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(path)
    # Two files of one name in different folders are different modules.
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    module_name = f"yardmaster_user_{path.stem}_{place}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with importing_beside(module, path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]  # half a module must not be found the next time
        raise
    return module
