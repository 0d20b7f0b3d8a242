"""``flopwatch token``: create, list and revoke access tokens."""

import argparse
import contextlib
import dataclasses
import getpass
import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from flopwatch import settings as settings_file
from flopwatch.settings import SettingError
from flopwatch_collector import config
from flopwatch_collector.api.tokens import ROLES, Token, Tokens
from flopwatch_collector.store import engines


def main(argv: list[str]) -> int:
    """Run ``token``; 0 when done, 1 when there is no such token.

    Raises:
        SettingError: a setting is wrong.
    """
    arguments = _parser().parse_args(argv)
    path = arguments.config or settings_file.default_file(os.environ)
    collector = config.read(settings_file.load(path), os.environ).collector
    if arguments.data_dir is not None:
        collector = dataclasses.replace(collector, data_dir=arguments.data_dir)
    folder = config.data_folder(collector, os.environ)
    with contextlib.ExitStack() as parts:
        tokens = Tokens(engines.control_of(collector, folder, parts))
        if arguments.action == "create":
            return _create(tokens, arguments)
        if arguments.action == "list":
            return _list(tokens, arguments)
        return _revoke(tokens, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch token", description="Access tokens of the collector.")
    actions = parser.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a token; its secret is printed once")
    create.add_argument("--role", choices=ROLES, required=True, help="what the token may do")
    create.add_argument("--name", default=None, help="who or what it is for (default: the user's name)")
    create.add_argument(
        "--team",
        action="append",
        default=[],
        help="a viewer's team (account): its holder sees the jobs of the teams given only",
    )
    listed = actions.add_parser("list", help="all tokens, without their secrets")
    revoke = actions.add_parser(
        "revoke", help="make a token useless, within seconds also for a running collector"
    )
    revoke.add_argument("token_id", help="the token's id, as list shows it")
    for action in (create, listed, revoke):
        action.add_argument(
            "--config", type=Path, help="the settings file (default: the system's, then the user's)"
        )
        action.add_argument(
            "--data-dir", type=Path, help="folder of the collector's data (collector.data_dir)"
        )
        action.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _create(tokens: Tokens, arguments: argparse.Namespace) -> int:
    teams = tuple(sorted({team.strip() for team in arguments.team if team.strip()}))
    if arguments.team and (not teams or arguments.role != "viewer"):
        raise SettingError("--team", ", ".join(arguments.team), "names of teams, of a token of role viewer")
    first = not tokens.all()
    token, secret = tokens.create(arguments.role, arguments.name or getpass.getuser(), teams)
    if arguments.json:
        sys.stdout.write(json.dumps({**_public(token), "secret": secret}) + "\n")
        return 0
    sys.stderr.write(
        f"token {token.token_id}, role {token.role}, for {token.name}; its secret is shown only now:\n"
    )
    sys.stdout.write(secret + "\n")
    if first:
        sys.stderr.write(_FIRST)
    return 0


_FIRST = (
    "From now on this collector asks for a token: pages and API for one of role viewer, operator or admin"
    " (flopwatch token create --role viewer),\nevery agent for one of role agent (agent.token_file or"
    " FLOPWATCH_AGENT_TOKEN_FILE). A running 'flopwatch up' gives its own agent one when it is started again.\n"
)


def _list(tokens: Tokens, arguments: argparse.Namespace) -> int:
    found = tokens.all()
    if arguments.json:
        sys.stdout.write(json.dumps([_public(token) for token in found]) + "\n")
        return 0
    if not found:
        sys.stderr.write("no tokens; make one with: flopwatch token create --role agent\n")
    for token in found:
        state = "valid" if token.revoked_seconds is None else f"revoked {_date(token.revoked_seconds)}"
        made = f"{token.token_id}  {token.role:<8}  {_date(token.created_seconds)}"
        sys.stdout.write(f"{made}  {state:<19}  {token.name}{_of(token)}\n")
    return 0


def _revoke(tokens: Tokens, arguments: argparse.Namespace) -> int:
    try:
        token = tokens.revoke(arguments.token_id)
    except KeyError:
        sys.stderr.write(
            f"flopwatch token: no token {arguments.token_id!r}; 'flopwatch token list' shows all\n"
        )
        return 1
    sys.stdout.write(json.dumps(_public(token)) + "\n" if arguments.json else f"revoked {token.token_id}\n")
    return 0


def _public(token: Token) -> dict[str, Any]:
    """What may be shown of a token."""
    shown = dataclasses.asdict(token)
    del shown["sha256"]
    return shown


def _of(token: Token) -> str:
    return f"  (jobs of {', '.join(token.teams)})" if token.teams else ""


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
