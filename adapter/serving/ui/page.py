"""The page at `/`: one self-contained document, and the JSON it polls."""

import base64
import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files

from adapter.apiserver.answer import Answer, Routes, json
from adapter.apiserver.request import Request
from adapter.apiserver.status import bad_request
from adapter.core.decisions import Decision
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui import view
from adapter.serving.ui.history import History

FIRST_ROWS = 50
MOST_ROWS = 500


_NOT_STORED = {"Cache-Control": "no-store"}


def page_routes(
    snapshot: Callable[[], Snapshot | None], history: History, clock: Callable[[], float] = time.time
) -> Routes:
    """The page and its data. snapshot: returns the newest one or None. clock: Unix seconds, for the age of a snapshot.

    Polling feeds the history too; add() once a tick fills it while the page is closed.
    """
    document = files("adapter.serving.ui").joinpath("page.html").read_text(encoding="utf-8")
    policies = {"Content-Security-Policy": _content_security_policy(document), "Referrer-Policy": "no-referrer"}
    page = Answer(200, document.encode(), "text/html; charset=utf-8", _NOT_STORED | policies)

    def data(request: Request) -> Answer:
        wanted = request.query.get("filter", ""), _rows(request.query.get("rows", str(FIRST_ROWS)))
        return json(content(snapshot(), history, clock(), wanted), headers=_NOT_STORED)

    return {"/": lambda request: page, "/page/data": data}


def content(snapshot: Snapshot | None, history: History, now_s: float, wanted: tuple[str, int]) -> dict[str, object]:
    """What the page shows. wanted: words to filter by, and the most rows; only these rows carry sparklines."""
    state, notice = view.freshness(snapshot, now_s)
    if snapshot is None:
        return {"state": state, "notice": notice, "total": 0, "matching": 0, "urgencies": {}, "rows": []}
    history.add(snapshot)
    words, most = wanted
    found = view.matching(snapshot.entries, words)
    shown = view.urgent_first(found)[:most]
    times_s, series = history.series([entry.decision.workload for entry in shown])
    counts = Counter(view.urgency(entry.decision) for entry in snapshot.entries)
    return {
        "state": state,
        "notice": notice,
        "total": len(snapshot.entries),
        "matching": len(found),
        "urgencies": {urgency: counts[urgency] for urgency in view.Urgency if counts[urgency]},
        "age_s": [round(snapshot.at_s - at_s, 3) for at_s in times_s],
        "window_s": history.window_s,
        "rows": [_row(entry.decision, series[entry.decision.workload]) for entry in shown],
    }


def _row(decision: Decision, series: dict[str, list[float | None]]) -> dict[str, object]:
    target_s = decision.backlog_time_target_s
    return {**asdict(view.workload_row(decision)), "target_s": target_s, "series": series}


def _rows(text: str) -> int:
    if not re.fullmatch("[0-9]{1,3}", text) or not 1 <= int(text) <= MOST_ROWS:
        raise bad_request(f"rows must be a whole number from 1 to {MOST_ROWS}, got {text!r}")
    return int(text)


def _content_security_policy(document: str) -> str:
    """Only the document's one script and one style sheet run, named by their hashes; data comes from here alone."""
    own = f"script-src '{_hash(document, 'script')}'; style-src '{_hash(document, 'style')}'; connect-src 'self'"
    return f"default-src 'none'; {own}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _hash(document: str, tag: str) -> str:
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", document, re.DOTALL)
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
