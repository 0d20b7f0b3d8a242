"""Grafana dashboards (fleet, job, node) from a small description; ``python -m flopwatch_deploy.grafana FOLDER``."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flopwatch_deploy.grafana_boards import BOARDS
from flopwatch_deploy.grafana_panels import Board, Panel, Variable

SCHEMA_VERSION = 38
WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${source}"}


def document(board: Board) -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["flopwatch"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "",
        "templating": {"list": [_source(), *(_variable(each) for each in board.variables)]},
        "annotations": {"list": []},
        "panels": _placed(board.panels),
    }


def _source() -> dict[str, Any]:
    """The choice of the Prometheus that is asked."""
    return {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "definition": variable.query,
        "refresh": 2,
        "sort": 1,
        "multi": variable.multi,
        "includeAll": variable.multi,
        **({"allValue": ".*"} if variable.multi else {}),
    }


def _placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Panels from left to right, a new row where one does not fit."""
    placed, x, y, row_height = [], 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > WIDTH:
            x, y, row_height = 0, y + row_height, 0
        placed.append(_panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height}))
        x, row_height = x + panel.width, max(row_height, panel.height)
    return placed


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    is_table = panel.kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": SOURCE,
            "expr": expression,
            "legendFormat": legend or "__auto",
            **({"instant": True, "format": "table"} if is_table else {}),
        }
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.stacked:
        defaults["custom"] = {"stacking": {"mode": "normal"}, "fillOpacity": 40}
    return {
        "id": number,
        "title": panel.title,
        "description": panel.note,
        "type": panel.kind,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel),
        **({"transformations": [HIDE_TIME]} if is_table else {}),
    }


HIDE_TIME = {
    "id": "organize",
    "options": {
        "excludeByName": {"Time": True, "Value": True, "__name__": True, "instance": True, "job": True}
    },
}


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area", "colorMode": "none"}
    if panel.kind == "bargauge":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "orientation": "horizontal",
            "displayMode": "basic",
        }
    if panel.kind == "timeseries":
        return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return {}


def text(board: Board) -> str:
    """The dashboard's file."""
    return json.dumps(document(board), indent=2, ensure_ascii=False) + "\n"


def main(argv: list[str]) -> int:
    """Write every dashboard into a folder."""
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        sys.stderr.write("usage: python -m flopwatch_deploy.grafana FOLDER\n")
        return 2
    for board in BOARDS:
        name = board.uid.removeprefix("flopwatch-")
        (Path(argv[0]) / f"{name}.json").write_text(text(board), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
