"""Grafana dashboards (fleet, job, node) from a small description; ``python -m flopwatch_deploy.grafana FOLDER``."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SCHEMA_VERSION = 38
WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${source}"}
Kind = Literal["timeseries", "stat", "table", "bargauge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One panel: its expressions by legend, its unit as Grafana spells it, and its size in grid cells."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "percentunit"
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    note: str = ""
    stacked: bool = False
    most: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """A choice on top of a dashboard, from a label's values."""

    name: str
    query: str
    multi: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    variables: tuple[Variable, ...]
    panels: tuple[Panel, ...]


CLUSTER = Variable(name="cluster", query="label_values(flopwatch_fleet_gpus, cluster)")
C = 'cluster=~"$cluster"'
J = 'cluster=~"$cluster", job_id="$job_id"'
N = 'instance=~"$instance"'
JOB_GPUS = f"flopwatch_job_gpu_info{{{J}}} * on (instance, gpu_uuid) group_left ()"


def ratio(title: str, *queries: tuple[str, str], **more: Any) -> Panel:
    """A panel of ratios from 0 to 1."""
    return Panel(title=title, queries=queries, most=1.0, **more)


def stat(title: str, query: str, unit: str = "percentunit", note: str = "") -> Panel:
    """One number."""
    return Panel(title=title, queries=((query, ""),), unit=unit, kind="stat", width=4, height=4, note=note)


FLEET = Board(
    uid="flopwatch-fleet",
    title="flopwatch / Fleet",
    variables=(CLUSTER,),
    panels=(
        stat(
            "Utilisation today (U_bill)",
            f"flopwatch_fleet_billable_ratio{{{C}}}",
            note="Leased, known, not idle",
        ),
        stat("Mean of 30 days", f"flopwatch_fleet_billable_30d_ratio{{{C}}}"),
        stat("Breakeven", f"flopwatch_fleet_breakeven_ratio{{{C}}}"),
        stat("Training MFU, last hour", f"flopwatch_fleet_mfu_ratio{{{C}}}", note="Of instrumented jobs"),
        stat("Wasted today", f"flopwatch_fleet_waste_gpu_seconds{{{C}}} / 3600", "short", "GPU-hours"),
        stat("GPUs reporting", f"flopwatch_fleet_gpus_reporting{{{C}}}", "short"),
        ratio(
            "Kernel activity, tensor activity, MFU",
            (f"cluster:hw_gpu_utilization_ratio:avg{{{C}}}", "kernels active {{cluster}}"),
            (f"cluster:flopwatch_gpu_tensor_active_ratio:avg{{{C}}}", "tensor active {{cluster}}"),
            (f"flopwatch_fleet_mfu_ratio{{{C}}}", "MFU {{cluster}}"),
            (f"flopwatch_fleet_mfu_target_ratio{{{C}}}", "target {{cluster}}"),
        ),
        ratio(
            "Utilisation against the breakeven",
            (f"flopwatch_fleet_billable_ratio{{{C}}}", "today {{cluster}}"),
            (f"flopwatch_fleet_breakeven_ratio{{{C}}}", "breakeven {{cluster}}"),
        ),
        Panel(
            title="Where GPU time went today",
            queries=(
                (f"sum by (ledger_class) (flopwatch_fleet_gpu_seconds{{{C}}}) / 3600", "{{ledger_class}}"),
            ),
            unit="short",
            kind="bargauge",
            note="GPU-hours since midnight",
        ),
        Panel(
            title="GPU time of closed windows",
            queries=(
                (
                    f"sum by (ledger_class) (flopwatch_fleet_window_gpu_seconds{{{C}}}) / 300",
                    "{{ledger_class}}",
                ),
            ),
            unit="short",
            stacked=True,
            note="GPUs by class; only where the collector writes remotely",
        ),
        Panel(
            title="Jobs that wasted most, last 24 hours",
            queries=((f"topk(10, flopwatch_job_waste_gpu_seconds{{{C}}} / 3600)", "{{job_id}}"),),
            unit="short",
            kind="bargauge",
            note="GPU-hours",
        ),
        Panel(
            title="Alerts",
            queries=((f"flopwatch_alert_active{{{C}}}", ""),),
            unit="short",
            kind="table",
        ),
        Panel(title="Power", queries=((f"cluster:hw_power_watts:sum{{{C}}}", "{{cluster}}"),), unit="watt"),
        ratio("Waste of capacity today", (f"cluster:flopwatch_fleet_waste:ratio{{{C}}}", "{{cluster}}")),
    ),
)
JOB = Board(
    uid="flopwatch-job",
    title="flopwatch / Job",
    variables=(
        CLUSTER,
        Variable(name="job_id", query=f"label_values(flopwatch_job_gpus{{{C}}}, job_id)", multi=False),
    ),
    panels=(
        stat("Step MFU", f"max by (job_id) (flopwatch_job_mfu_ratio{{{J}}})"),
        stat("Wall MFU", f"flopwatch_job_wall_mfu_ratio{{{J}}}"),
        stat("Target", f"flopwatch_job_mfu_target_ratio{{{J}}}"),
        stat("GPUs", f"flopwatch_job_gpus{{{J}}}", "short"),
        stat("Tokens per second", f"flopwatch_job_tokens_per_second{{{J}}}", "short"),
        stat("Wasted, 24 hours", f"flopwatch_job_waste_gpu_seconds{{{J}}} / 3600", "short", "GPU-hours"),
        ratio(
            "MFU",
            (f"flopwatch_job_mfu_ratio{{{J}}}", "step MFU, {{basis}}"),
            (f"flopwatch_job_hardware_utilization_ratio{{{J}}}", "hardware estimate, no MFU"),
            (f"flopwatch_job_wall_mfu_ratio{{{J}}}", "wall MFU"),
            (f"flopwatch_job_mfu_target_ratio{{{J}}}", "target"),
        ),
        ratio(
            "Kernel and tensor activity",
            (f"flopwatch_job_kernel_active_ratio{{{J}}}", "kernels active"),
            (f"flopwatch_job_tensor_active_ratio{{{J}}}", "tensor active"),
        ),
        Panel(
            title="Newest step", queries=((f"flopwatch_job_last_step{{{J}}}", "step"),), unit="short", width=8
        ),
        Panel(
            title="Time since the newest step",
            queries=((f"time() - flopwatch_job_last_step_timestamp_seconds{{{J}}}", "age"),),
            unit="s",
            width=8,
        ),
        Panel(title="State", queries=((f"flopwatch_job_state{{{J}}}", "{{state}}"),), unit="short", width=8),
        Panel(
            title="Who", queries=((f"flopwatch_job_info{{{J}}}", ""),), unit="short", kind="table", width=24
        ),
    ),
)
NODE = Board(
    uid="flopwatch-node",
    title="flopwatch / Node",
    variables=(Variable(name="instance", query="label_values(flopwatch_agent_info, instance)"),),
    panels=(
        stat("GPUs seen", f"flopwatch_gpus_seen{{{N}}}", "short"),
        stat("GPUs expected", f"flopwatch_gpus_expected{{{N}}}", "short"),
        stat("NVML works", f"flopwatch_nvml_up{{{N}}}", "short"),
        stat("CPU busy", f"flopwatch_node_cpu_busy_ratio{{{N}}}"),
        stat("Memory available", f"flopwatch_node_memory_available_bytes{{{N}}}", "bytes"),
        stat("Batches waiting", f"flopwatch_spool_waiting_batches{{{N}}}", "short"),
        ratio("Kernels active", (f"hw_gpu_utilization_ratio{{{N}}}", "{{gpu_uuid}}")),
        ratio("Tensor active", (f"flopwatch_gpu_tensor_active_ratio{{{N}}}", "{{gpu_uuid}}")),
        Panel(title="Power", queries=((f"hw_power_watts{{{N}}}", "{{gpu_uuid}}"),), unit="watt"),
        Panel(
            title="Temperature", queries=((f"hw_temperature_celsius{{{N}}}", "{{gpu_uuid}}"),), unit="celsius"
        ),
        Panel(
            title="SM clock",
            queries=((f"flopwatch_gpu_sm_clock_hertz{{{N}}}", "{{gpu_uuid}}"),),
            unit="hertz",
        ),
        ratio(
            "Slowed down by heat or the power brake",
            (f"rate(flopwatch_gpu_throttle_seconds_total{{{N}}}[5m])", "{{gpu_uuid}}"),
        ),
        Panel(
            title="Memory",
            queries=(
                (f"hw_gpu_memory_usage_bytes{{{N}}} / hw_gpu_memory_limit_bytes{{{N}}}", "{{gpu_uuid}}"),
            ),
            most=1.0,
        ),
        Panel(
            title="Network",
            queries=((f"rate(hw_network_io_bytes_total{{{N}}}[5m])", "{{port}} {{network_io_direction}}"),),
            unit="Bps",
        ),
        Panel(
            title="NVLink",
            queries=(
                (f"rate(flopwatch_gpu_nvlink_transmit_bytes_total{{{N}}}[5m])", "{{gpu_uuid}} sent"),
                (f"rate(flopwatch_gpu_nvlink_receive_bytes_total{{{N}}}[5m])", "{{gpu_uuid}} received"),
            ),
            unit="Bps",
        ),
        Panel(
            title="Jobs on the GPUs",
            queries=((f"flopwatch_job_gpu_info{{{N}}}", ""),),
            unit="short",
            kind="table",
        ),
        Panel(
            title="Sources that fail",
            queries=((f"flopwatch_source_success{{{N}}} == 0", "{{source}}"),),
            unit="short",
        ),
    ),
)
BOARDS: tuple[Board, ...] = (FLEET, JOB, NODE)


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
