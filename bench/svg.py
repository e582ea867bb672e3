"""The marks of the drawings in docs: text, paths, and one style for light and dark pages."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

Point = tuple[float, float]

_STYLE = """
text { font: 11px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #59636e; }
.title { font-size: 16px; font-weight: 600; fill: #1f2328; }
.name { font-size: 13px; font-weight: 600; fill: #1f2328; }
.strong { fill: #1f2328; }
.fore { fill: #0a66c2; font-weight: 600; }
.back { fill: #8c959f; font-weight: 600; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.paper { fill: #ffffff; stroke: #d1d9e0; }
.grid { stroke: #d1d9e0; fill: none; }
.step { stroke: #8c959f; stroke-dasharray: 1 3; fill: none; }
.below { stroke: #b6bec7; stroke-width: 3.5; stroke-linejoin: round; fill: none; }
.above { stroke: #0a66c2; stroke-width: 1.5; stroke-linejoin: round; fill: none; }
.area { fill: #0a66c2; fill-opacity: .15; }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1; }
  .title, .name, .strong { fill: #f0f6fc; }
  .fore { fill: #58a6ff; }
  .paper { fill: #0d1117; stroke: #3d444d; }
  .grid { stroke: #30363d; }
  .step { stroke: #6e7681; }
  .below { stroke: #57606a; }
  .above { stroke: #58a6ff; }
  .area { fill: #58a6ff; fill-opacity: .22; }
}
""".strip()


def head(width: int, height: int, title: str, style: str = "") -> list[str]:
    """The opening of a drawing. title: for readers that cannot see it. style: rules beside those of every drawing."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>\n{_STYLE}\n{style}</style>",
        f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]


def path(points: Sequence[Point], kind: str) -> str:
    """A line through points. kind: its class in the style."""
    inner = zip(points, points[1:], points[2:], strict=False)
    bends = [points[0], *(here for before, here, after in inner if not _straight(before, here, after)), points[-1]]
    return f'<path class="{kind}" d="M' + "L".join(f"{x:g} {y:g}" for x, y in bends) + '"/>'


def _straight(before: Point, here: Point, after: Point) -> bool:
    """Whether a point lies on the line between its neighbours and can be left out."""
    return before[1] == here[1] == after[1] or before[0] == here[0] == after[0] or before == here


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words whose baseline begins at a point."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}" y="{y:g}">{escape(words)}</text>'


def dot(x: float, y: float, kind: str, title: str) -> str:
    """A point with a title that a pointer shows."""
    return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="3.5"><title>{escape(title)}</title></circle>'
