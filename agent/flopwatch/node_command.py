"""``flopwatch node drain|undrain|spare|unspare|maint|unmaint|health|list``: what holds of nodes and GPUs."""

import argparse
import datetime
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flopwatch.collector_client import DEFAULT_URL, Address, AskError, address_from, ask

VERBS = {
    "drain": ("drain", False, "takes no new work: without a lease its time is FAULT"),
    "undrain": ("drain", True, "end a drain"),
    "spare": ("spare", False, "held back on purpose: without a lease its time is SPARE"),
    "unspare": ("spare", True, "no longer held back"),
    "maint": ("maintenance", False, "planned maintenance: without a lease its time is MAINT"),
    "unmaint": ("maintenance", True, "end maintenance"),
}
"""Command, what it declares, whether it ends it, and its help."""
_LATER = re.compile(r"\+(\d+(?:\.\d+)?)([smhd])")
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
TIME_ALLOWED = "now, +2h (s, m, h, d from now), epoch seconds, or a time such as 2026-12-01T08:00"


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when the collector cannot be asked or refuses, 2 for wrong use."""
    options = _parser(time.time()).parse_args(argv)
    try:
        document = _run(options, address_from(options.collector, options.token_file, os.environ))
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    text = json.dumps(document, indent=1) + "\n" if options.json else as_text(document)
    sys.stdout.write(text)
    return 0


def _parser(now: float) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch node", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for verb, (_, ends, text) in VERBS.items():
        _add_declaring(commands.add_parser(verb, help=text), now, ends=ends)
    health = commands.add_parser("health", help="say whether a node or GPU is in order")
    _add_declaring(health, now, ends=False)
    health.add_argument(
        "state",
        nargs="?",
        default="faulty",
        choices=("faulty", "ok"),
        help="faulty (default): without a lease its time is FAULT; ok: in order again",
    )
    listing = commands.add_parser("list", help="every node, and what holds of it")
    listing.add_argument("node", metavar="NODE", nargs="?", help="one node, with who declared what")
    listing.add_argument("--cluster", help="only nodes of this cluster")
    _add_asking(listing)
    return parser


def _add_declaring(command: argparse.ArgumentParser, now: float, *, ends: bool) -> None:
    command.add_argument("node", metavar="NODE", help="the node's name, as its agent has it")
    command.add_argument("--gpu", metavar="SLOT", help="one GPU: slot, index or UUID")
    command.add_argument("--cluster", help="where several clusters have a node of this name")

    def moment(text: str) -> float:
        return parsed(text, now)

    command.add_argument("--from", dest="begin", type=moment, metavar="TIME", help=TIME_ALLOWED)
    if not ends:
        command.add_argument("--until", type=moment, metavar="TIME", help="when it ends by itself")
        command.add_argument("--reason", default="", help="why, for people")
    _add_asking(command)


def _add_asking(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument(
        "--collector", "--url", metavar="URL",
        help=f"the collector (default: FLOPWATCH_COLLECTOR_URL, then {DEFAULT_URL})",
    )  # fmt: skip
    command.add_argument(
        "--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])"
    )


def parsed(text: str, now: float) -> float:
    """Epoch seconds of a time as people write it; without a zone it is this machine's.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    later = _LATER.fullmatch(text.strip())
    if text.strip() == "now":
        return now
    if later is not None:
        return now + float(later[1]) * _UNIT_SECONDS[later[2]]
    if re.fullmatch(r"\d{9,11}(\.\d+)?", text.strip()):
        return float(text)
    try:
        return datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: {TIME_ALLOWED}") from None


def _run(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    """The collector's answer to what was asked for."""
    if options.command == "list":
        return _listed(options, address)
    if options.command == "health":
        declaration, ends = "faulty", options.state == "ok"
    else:
        declaration, ends, _ = VERBS[options.command]
    body = {
        "declaration": declaration,
        "end": ends,
        "cluster": options.cluster,
        "gpu": options.gpu,
        "from_seconds": options.begin,
        "until_seconds": getattr(options, "until", None),
        "reason": getattr(options, "reason", ""),
    }
    given = {name: value for name, value in body.items() if value is not None}
    return dict(ask(address, "POST", f"/api/v1/nodes/{quote(options.node, safe='')}/declarations", given))


def _listed(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    if options.node is not None:
        where = f"?cluster={quote(options.cluster, safe='')}" if options.cluster else ""
        return dict(ask(address, "GET", f"/api/v1/nodes/{quote(options.node, safe='')}{where}"))
    nodes = ask(address, "GET", "/api/v1/nodes")["nodes"]
    return {"nodes": [node for node in nodes if options.cluster in (None, node["cluster"])]}


def as_text(document: Mapping[str, Any]) -> str:
    """The nodes for people: a line each, under it who declared what."""
    nodes = document.get("nodes", [document])
    if not nodes:
        return "no node is known yet\n"
    width = max(len(node["node"]) for node in nodes)
    lines = []
    for node in nodes:
        seen = "reports" if node["reporting"] else "silent" if node["last_seen_seconds"] else "never reported"
        said = "; ".join(_state(state) for state in node["states"]) or "in service"
        lines.append(
            f"{node['node']:<{width}}  {node['cluster']}  {node['gpus']:>3} GPUs  {seen:<14}  {said}"
        )
        lines += [f"  {_window(window)}" for window in node.get("windows", ())]
    return "\n".join(lines) + "\n"


def _state(state: Mapping[str, Any]) -> str:
    gpu = f" {state['gpu']}" if state["gpu"] else ""
    until = "" if state["until_seconds"] is None else f" until {_time(state['until_seconds'])}"
    text = f": {state['text']}" if state["text"] else ""
    return (
        f"{state['declaration']}{gpu} since {_time(state['since_seconds'])}{until} ({state['source']}){text}"
    )


def _window(window: Mapping[str, Any]) -> str:
    gpu = f" {window['gpu']}" if window["gpu"] else ""
    until = "open" if window["until_seconds"] is None else _time(window["until_seconds"])
    by = f" by {window['declared_by']}" if window["declared_by"] else ""
    ended = f", ended by {window['ended_by']}" if window["ended_by"] else ""
    reason = f": {window['reason']}" if window["reason"] else ""
    span = f"{_time(window['from_seconds'])} to {until}"
    return f"{window['declaration']}{gpu} {span}, declared {_time(window['declared_seconds'])}{by}{ended}{reason}"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
