"""SVG: the frame of a panel, and the primitives that panels are drawn with."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

COLUMN, ROW, GAP = 50, 30, 6  # pixels of Grafana's grid
COLORS = {
    "green": "#2f9e44",
    "yellow": "#c98500",
    "orange": "#e8590c",
    "red": "#d6336c",
    "blue": "#1971c2",
    "text": "#57606a",
}
PALETTE = (
    "#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#c98500", "#0c8599", "#d6336c", "#5c940d", "#5f3dc4", "#868e96",
)  # fmt: skip
STYLE = """
text { font: 11px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #59636e; }
.page { fill: #f6f8fa; }
.panel { fill: #ffffff; stroke: #d1d9e0; }
.title { font-size: 12px; font-weight: 600; fill: #1f2328; }
.head { font-size: 17px; font-weight: 600; fill: #1f2328; }
.section { font-size: 13px; font-weight: 600; fill: #1f2328; }
.number { font-size: 26px; font-weight: 600; }
.name { font-size: 17px; font-weight: 600; }
.cell { fill: #1f2328; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: #e4e8ec; fill: none; }
.line { fill: none; stroke-width: 1.3; stroke-linejoin: round; }
.limit { fill: none; stroke-dasharray: 5 4; }
.mark { stroke: #1971c2; stroke-dasharray: 2 3; stroke-opacity: .45; }
""".strip()


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The bottom edge."""
        return self.top + self.height


def place(panel: dict[str, Any], top: float) -> Box:
    """Where a panel or row is. top: of the first row of the grid."""
    grid = panel["gridPos"]
    left, width = GAP + grid["x"] * COLUMN, grid["w"] * COLUMN - GAP
    return Box(left, top + grid["y"] * ROW, width, grid["h"] * ROW - GAP)


def frame(panel: dict[str, Any], box: Box) -> list[str]:
    """The background and the title of a panel; its description is the tooltip."""
    return [
        f'<rect class="panel" x="{box.left}" y="{box.top}" width="{box.width}" height="{box.height}" rx="3">'
        f"<title>{escape(panel['description'])}</title></rect>",
        text(box.left + 8, box.top + 16, panel["title"], "title"),
    ]


def text(x: float, y: float, content: str, style: str = "", color: str = "") -> str:
    """One line of text."""
    fill = f' style="fill:{color}"' if color else ""
    return f'<text class="{style}" x="{x:.0f}" y="{y:.0f}"{fill}>{escape(content)}</text>'


def shorten(content: str, width: float) -> str:
    """Cut a text to a width in pixels."""
    letters = max(int(width / 5.8), 1)
    return content if len(content) <= letters else f"{content[: letters - 1]}…"


def color_of(value: float | None, steps: Iterable[dict[str, Any]]) -> str:
    """The color of a number under thresholds."""
    found = "text"
    for step in steps:
        if step["value"] is None or (value is not None and value >= step["value"]):
            found = step["color"]
    return COLORS.get(found, found)


def page(title: str, note: str, size: tuple[float, float], parts: Iterable[str]) -> str:
    """The whole picture. size: width and height."""
    width, height = size
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="page-title">'
    )
    named = f'<title id="page-title">{escape(title)}</title>'
    background = f'<rect class="page" width="{width:.0f}" height="{height:.0f}" rx="6"/>'
    lines = [head, named, f"<style>\n{STYLE}\n</style>", background, text(12, 26, title, "head"), text(12, 44, note)]
    return "\n".join([*lines, *parts, "</svg>", ""])
