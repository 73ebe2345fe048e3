"""The paper figures are drawn on: one style, and SVG that is small, still and safe to inline.

The same input gives the same bytes. Backgrounds are transparent and axes a middle grey, so that a
figure reads on white and on black.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from yardmaster.report.values import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

INK = "#757575"
"""Axes and text: the grey with the same contrast on white and on near-black."""
WIDTH_IN = 5.6
NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
"""What makes SVG in a file of its own SVG."""

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.xmargin": 0.01,
    "font.size": 10,
    "grid.alpha": 0.25,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.labelcolor": INK,
    "lines.dash_capstyle": "round",
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,  # names are names: "$x$" is not a formula
    "xtick.color": INK,
    "xtick.labelsize": 9.5,
    "ytick.color": INK,
    "ytick.labelsize": 9.5,
}
_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture: its SVG, what to read in it, and its content in words for those who cannot."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str


def draw(
    name: str,
    *,
    title: str,
    caption: str,
    alt: str,
    height_in: float,
    paint: Callable[[Canvas], None],
    width_in: float = WIDTH_IN,
) -> Figure:
    """Let `paint` draw on an empty canvas and return the finished figure.

    Args:
        name: short name, unique within a page; prefixes every id in the SVG.
        title: what the picture shows, in a few words.
        caption: how to read it.
        alt: what it says, for readers who cannot see it.
        height_in: height in inches.
        paint: draws with Matplotlib's object interface.
        width_in: width in inches.
    """
    out = io.StringIO()
    with empty_canvas(name, (width_in, height_in)) as canvas:
        paint(canvas)
        canvas.savefig(out, format="svg", transparent=True, metadata=_METADATA)
    title, caption, alt = plain(title), plain(caption), plain(alt)
    return Figure(name, title, caption, alt, _tidy(out.getvalue(), name, title, alt))


@contextmanager
def empty_canvas(name: str, size_in: tuple[float, float], ink: str = INK) -> Iterator[Canvas]:
    """Yield a canvas of (width, height) to draw on and to save, in the style of every figure.

    Args:
        name: name of the figure, from which ids in an SVG are made.
        size_in: width and height in inches.
        ink: colour of axes and text.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    inked = {key: ink for key, value in _STYLE.items() if value == INK}
    with mpl.rc_context(), warnings.catch_warnings():
        # The reader's fonts draw the text, not Matplotlib's: a glyph missing there is no news.
        warnings.filterwarnings("ignore", message=".*missing from (current )?font.*")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | inked | {"svg.hashsalt": name})
        yield Canvas(figsize=size_in, layout="constrained")


_TAG = re.compile(r"<[^>]*>")
_PATH = re.compile(r'(?<= d=")[^"]*')
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r'( id="|href="#|url\(#)')


def _tidy(svg: str, name: str, title: str, alt: str) -> str:
    """Turn Matplotlib's document into an element that can stand alone or inside a page.

    Only tags are rewritten, never the text between them: a scheduler's name stays as it is.
    """
    body = svg[svg.index("<svg") :]
    # Matplotlib's style sheet says `*{…}`; inside a page it would reach every element of the page.
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", body, count=1, flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _tidy_tag(tag.group(), name), body)
    box = re.search(r'viewBox="[^"]*"', body)
    root = (
        f'<svg{NAMESPACE} {box.group() if box else ""} role="img" '
        f'aria-labelledby="{name}-title {name}-desc" '
        f'stroke-linejoin="round" stroke-linecap="butt">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(alt)}</desc>\n'
    )
    inside = body[body.index(">") + 1 :]
    return root + re.sub(r"\n\s*", "\n", inside).strip() + "\n"


def _tidy_tag(tag: str, name: str) -> str:
    tag = tag.replace("xlink:href", "href")
    tag = _REFERENCE.sub(rf"\g<1>{name}-", tag)
    tag = _PATH.sub(lambda path: _rounded(path.group(), 1), tag)
    return _rounded(tag, 2)


def _rounded(text: str, places: int) -> str:
    return _NUMBER.sub(lambda match: f"{round(float(match.group()), places) + 0.0:g}", text)
