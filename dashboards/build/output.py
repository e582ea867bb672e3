"""The dashboards as the text of their files."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.build.cost import cost
from dashboards.build.fleet import fleet
from dashboards.build.health import health
from dashboards.build.workload import workload

FOLDER = Path(__file__).parents[1]
RULES = tuple(sorted((FOLDER / "rules").glob("*.yaml")))
CHART_FILES = FOLDER.parent / "charts" / "backlog-adapter" / "files"


def documents() -> dict[str, str]:
    """File name -> dashboard as JSON."""
    built = {"fleet": fleet(), "workload": workload(), "health": health(), "cost": cost()}
    return {f"{name}.json": _text(board) for name, board in built.items()}


def _text(board: Dashboard) -> str:
    content = json.loads(json.dumps(board, cls=JSONEncoder))
    # The SDK always writes the place of newer Grafana versions, a menu that hides the links.
    for each in (*content["links"], *content["annotations"].setdefault("list", [])):
        each.pop("placement", None)
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
