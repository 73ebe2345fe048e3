"""Declared parameters: one statement for Python, TOML files, command-line options and documents.

Every process of a recipe is a frozen dataclass (`Part`) whose fields are declared with `number`,
`whole`, `numbers`, `choice`, … below. A declaration says what a value means, its unit and its
bounds; that is enough to check values wherever they come from and to list all mistakes at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from yardmaster.errors import InvalidConfigError, InvalidWorkloadError, YardmasterError
from yardmaster.names import Registry, unknown
from yardmaster.workloads.arguments import share as share_of_jobs
from yardmaster.workloads.arguments import whole_number

SEPARATOR = "/"
"""Between the values of a list in one line: `values=1/2/4/8` needs no quotes in a shell."""

_METADATA_KEY = "yardmaster"


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is known of one parameter.

    Attributes:
        kind: the values it takes, in words.
        unit: their unit, "" for plain numbers and names.
        meaning: what it is, for documents and help.
        checked: (name, value) → the value as it is kept.
        from_text: one-line notation → a value to be checked; raises ValueError.
        default: the default as it is kept; None where there is none or none is needed.
        required: whether it must be given.
    """

    kind: str
    unit: str
    meaning: str
    checked: Callable[[str, Any], Any]
    from_text: Callable[[str], Any]
    default: Any
    required: bool


def number(
    meaning: str,
    *,
    unit: str = "",
    default: Any = MISSING,
    above: float | None = None,
    least: float | None = None,
    most: float = math.inf,
) -> Any:
    """Declare a real number in (`above`, `most`] or [`least`, `most`]; finite unless by default."""
    bounds = _bounds(above, least, most)

    def checked(name: str, value: Any) -> float:
        if value == default and isinstance(value, float):  # such as infinity for no limit
            return value
        return _real(name, value, above=above, least=least, most=most)

    return _declared("number" + bounds, meaning, checked, float, default=default, unit=unit)


def whole(
    meaning: str,
    *,
    unit: str = "",
    default: Any = MISSING,
    least: int,
    most: int | None = None,
) -> Any:
    """Declare a whole number from `least` to `most`."""
    bounds = _bounds(None, least, math.inf if most is None else most)

    def checked(name: str, value: Any) -> int:
        return whole_number(name, value, smallest=least, largest=most)

    return _declared("whole number" + bounds, meaning, checked, int, default=default, unit=unit)


def share(meaning: str, *, default: Any = MISSING) -> Any:
    """Declare a share of the jobs, 0…1."""

    def checked(name: str, value: Any) -> float:
        return share_of_jobs(name, _real(name, value, above=None, least=None, most=math.inf))

    return _declared("number 0…1", meaning, checked, float, default=default)


def numbers(
    meaning: str,
    *,
    unit: str = "",
    default: Any = MISSING,
    above: float | None = None,
    least: float | None = None,
    length: int | None = None,
) -> Any:
    """Declare a list of real numbers, all within the bounds; `length` of them if that is fixed."""
    kind = f"{length} numbers" if length else "numbers"

    def checked(name: str, values: Any) -> tuple[float, ...]:
        _check_list(name, values, kind, length)
        each = f"{name}[{{}}]"
        return tuple(
            _real(each.format(place), value, above=above, least=least, most=math.inf)
            for place, value in enumerate(values)
        )

    kind += _bounds(above, least, math.inf)
    return _declared(kind, meaning, checked, _split(float), default=default, unit=unit)


def texts(meaning: str, *, default: Any = MISSING) -> Any:
    """Declare a list of names."""

    def checked(name: str, values: Any) -> tuple[str, ...]:
        _check_list(name, values, "texts", None)
        return tuple(_text(f"{name}[{place}]", value) for place, value in enumerate(values))

    return _declared("names", meaning, checked, _split(str), default=default)


def text(meaning: str, *, default: Any = MISSING) -> Any:
    """Declare a text."""
    return _declared("text", meaning, _text, str, default=default)


def choice(meaning: str, names: Iterable[str], *, default: Any = MISSING) -> Any:
    """Declare one name among a few."""
    known = tuple(str(name) for name in names)

    def checked(name: str, value: Any) -> str:
        if value not in known:
            raise unknown(f"value for {name}", str(value), known)
        return str(value)

    return _declared(" or ".join(known), meaning, checked, str, default=default)


def yes_or_no(meaning: str, *, default: Any = MISSING) -> Any:
    """Declare a yes or no: `true` and `false` in TOML, `yes` and `no` too in one line."""

    def checked(name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidWorkloadError(f"{name} must be true or false, got {value!r}.")
        return value

    return _declared("true or false", meaning, checked, _truth, default=default)


class Part:
    """A process with declared parameters; subclasses are frozen dataclasses.

    Attributes:
        process: the name by which recipes call it.
    """

    __slots__ = ()
    process: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check every parameter, then whether they go together.

        Raises:
            InvalidWorkloadError: if a value makes no sense, or UnknownNameError if it is a name.
            InvalidConfigError: with all mistakes, if there are several.
        """
        mistakes: list[YardmasterError] = []
        for name, parameter in parameters_of(type(self)).items():
            value = getattr(self, name)
            if value is None and not parameter.required and parameter.default is None:
                continue
            try:
                object.__setattr__(self, name, parameter.checked(name, value))
            except YardmasterError as error:
                mistakes.append(error)
        if not mistakes:
            mistakes = [InvalidWorkloadError(complaint) for complaint in self.contradictions()]
        if len(mistakes) == 1:
            raise mistakes[0]
        if mistakes:
            raise InvalidConfigError(self.process or type(self).__name__, [*map(str, mistakes)])

    def contradictions(self) -> Iterator[str]:
        """Yield what makes no sense although every single value does."""
        yield from ()

    def remarks(self) -> tuple[str, ...]:
        """Return what the reader of a workload drawn from this must know."""
        return ()


AnyPart = TypeVar("AnyPart", bound=Part)


def catalogue(kind: str, *processes: type[AnyPart]) -> Registry[type[AnyPart]]:
    """Return the processes by name."""
    found: Registry[type[AnyPart]] = Registry(kind)
    for process in processes:
        found.add(process.process, process)
    return found


def parameters_of(part: type) -> Mapping[str, Parameter]:
    """Return the declared parameters of a process, in their order."""
    return {
        each.name: each.metadata[_METADATA_KEY]
        for each in fields(part)
        if _METADATA_KEY in each.metadata
    }


def _declared(
    kind: str,
    meaning: str,
    checked: Callable[[str, Any], Any],
    from_text: Callable[[str], Any],
    *,
    default: Any,
    unit: str = "",
) -> Any:
    required = default is MISSING
    known = None if required else default
    parameter = Parameter(kind, unit, meaning, checked, from_text, known, required)
    return field(default=default, metadata={_METADATA_KEY: parameter})


def _real(name: str, value: Any, *, above: float | None, least: float | None, most: float) -> float:
    """Return a finite number within its bounds."""
    try:
        found = math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise InvalidWorkloadError(f"{name} must be a number, got {value!r}.")
    if above is not None and found <= above:
        raise InvalidWorkloadError(f"{name} must be a number above {above:g}, got {value!r}.")
    if least is not None and found < least:
        raise InvalidWorkloadError(f"{name} must be a number of at least {least:g}, got {value!r}.")
    if found > most:
        raise InvalidWorkloadError(f"{name} must be at most {most:g}, got {value!r}.")
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidWorkloadError(f"{name} must be a text, got {value!r}.")
    return value


def _check_list(name: str, values: Any, kind: str, length: int | None) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InvalidWorkloadError(f"{name} must be a list of {kind}, got {values!r}.")
    if length is not None and len(values) != length:
        raise InvalidWorkloadError(f"{name} must be a list of {kind}, got {len(values)}.")


def _bounds(above: float | None, least: float | None, most: float) -> str:
    lower = f" > {above:g}" if above is not None else f" ≥ {least:g}" if least is not None else ""
    upper = "" if math.isinf(most) else f" ≤ {most:g}"
    return f"{lower}{',' if lower and upper else ''}{upper}"


def _split(each: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda line: [each(value.strip()) for value in line.split(SEPARATOR)]


def _truth(word: str) -> bool:
    words = {"true": True, "yes": True, "false": False, "no": False}
    if word.lower() not in words:
        raise ValueError(word)
    return words[word.lower()]
