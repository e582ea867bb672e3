"""Draw dashboards from a Prometheus: run `python -m dashboards.render --help`."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dashboards.queries import NAMES
from dashboards.render.data import PanelData, Span
from dashboards.render.picture import draw


def main(arguments: Sequence[str] | None = None) -> None:
    """Write one SVG for each dashboard, and print its path."""
    given = _parser().parse_args(arguments)
    end_s = given.end or int(time.time())
    given.out.mkdir(parents=True, exist_ok=True)
    span = Span(end_s - 60 * given.minutes, end_s)
    for name in given.dashboard or NAMES:
        selected = dict(each.split("=", 1) for each in given.select if name == "workload")
        data = PanelData(given.prometheus, span, selected, given.scrape)
        path = given.out / f"{name}.svg"
        path.write_text(draw(name, data), encoding="utf-8")
        data.close()
        sys.stdout.write(f"{path}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dashboards.render", description=__doc__)
    parser.add_argument("--prometheus", required=True, help="address, as http://127.0.0.1:9090")
    parser.add_argument("--minutes", type=int, default=15, help="length of the time range")
    parser.add_argument("--end", type=int, help="end of the time range, Unix seconds; now by default")
    parser.add_argument("--scrape", type=int, default=15, help="scrape interval in seconds")
    parser.add_argument("--select", action="append", default=[], metavar="VARIABLE=VALUE", help="for `workload`")
    parser.add_argument("--dashboard", action="append", choices=NAMES, help="all by default")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pictures")
    return parser


if __name__ == "__main__":
    main()
