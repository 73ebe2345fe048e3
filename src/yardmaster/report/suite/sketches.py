"""Figures before they are drawn: for the page as SVG, for papers and slides as PNG and PDF.

The SVG is that of every page, transparent and grey; PNG and PDF are dark on white. The same runs
give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yardmaster.report.drawing import WIDTH_IN, Figure, draw, empty_canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

WIDE_IN = 10.2
"""Width of figures with several panels."""
DOTS_PER_INCH = 200
_INK = "#2a2e33"
_SAVED: dict[str, dict[str, Any]] = {
    "png": {"dpi": DOTS_PER_INCH, "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
}


@dataclass(frozen=True, slots=True)
class Sketch:
    """One figure: what it shows, in words, and how to paint it.

    Attributes:
        name: name of its files, and prefix of the ids in its SVG.
        title: what it shows, in a few words.
        caption: how to read it.
        alt: what it says, for readers who cannot see it.
        height_in: height in inches.
        paint: draws it.
        width_in: width in inches.
    """

    name: str
    title: str
    caption: str
    alt: str
    height_in: float
    paint: Callable[[Canvas], None]
    width_in: float = WIDTH_IN

    @property
    def is_wide(self) -> bool:
        """Whether it takes the whole width of a page."""
        return self.width_in > WIDTH_IN

    def figure(self) -> Figure:
        """Draw it for a page."""
        return draw(
            self.name,
            title=self.title,
            caption=self.caption,
            alt=self.alt,
            height_in=self.height_in,
            width_in=self.width_in,
            paint=self.paint,
        )

    def pictures(self) -> dict[str, bytes]:
        """Draw it for paper: the content of a file by its ending."""
        found = {}
        with empty_canvas(self.name, (self.width_in, self.height_in), _INK) as canvas:
            self.paint(canvas)
            for ending, options in _SAVED.items():
                out = io.BytesIO()
                canvas.savefig(out, format=ending, facecolor="white", **options)
                found[ending] = out.getvalue()
                canvas.set_layout_engine("none")  # the first file has laid it out for all
        return found
