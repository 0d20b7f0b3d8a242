"""Actions on alerts that stand, opt-in: confirmed several times, rare, once an episode, always with an audit line.

What was done is kept, so that a restart does nothing again; how often an alert was confirmed is not, so that a restart
only delays.
"""

import json
import logging
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flopwatch.query import AlertRow
from flopwatch_collector.config_actions import ActionSettings
from flopwatch_collector.store.port import Control

ACTION_KIND = "alert_action"
DAY_SECONDS = 86_400.0
MOST_OUTPUT = 500
"""Characters of a command's output in the audit line."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """An action as it was done, or would have been."""

    action: str
    fingerprint: str
    fired_seconds: float
    subject: str
    time_seconds: float
    dry_run: bool
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What is to be done now."""

    settings: ActionSettings
    alert: AlertRow
    subject: str


def subject_of(alert: AlertRow) -> str:
    """What an action is about: the node where the alert names one, else its job."""
    labels = {**{key: str(value) for key, value in alert.values.items() if value is not None}, **alert.labels}
    return labels.get("node") or labels.get("job_id") or labels.get("cluster", "")


def planned(
    settings: Iterable[ActionSettings],
    alerts: Iterable[AlertRow],
    confirmed: Mapping[tuple[str, str], int],
    done: Iterable[Done],
    now: float,
) -> tuple[Planned, ...]:
    """What is due: confirmed often enough, not done in this episode, not too soon and not too often. Pure."""
    past = list(done)
    found: list[Planned] = []
    firing = [alert for alert in alerts if alert.state == "firing" and not alert.stale]
    for one in settings:
        today = sum(each.action == one.name and now - each.time_seconds < DAY_SECONDS for each in past)
        for alert in firing:
            subject = subject_of(alert)
            if (
                alert.rule not in one.rule
                or confirmed.get((one.name, alert.fingerprint), 0) < one.confirmations
            ):
                continue
            if today >= one.most_per_day or _too_soon(one, alert, subject, past, now):
                continue
            if any(each.settings is one and each.subject == subject for each in found):
                continue
            found.append(Planned(settings=one, alert=alert, subject=subject))
            today += 1
    return tuple(found)


def _too_soon(one: ActionSettings, alert: AlertRow, subject: str, past: list[Done], now: float) -> bool:
    return any(
        each.action == one.name
        and (
            (each.fingerprint == alert.fingerprint and each.fired_seconds == alert.fired_seconds)
            or (each.subject == subject and now - each.time_seconds < one.cooldown_seconds)
        )
        for each in past
    )


def carried_out(plan: Planned) -> str:
    """Run the command or ask the webhook; returns what came of it, in words."""
    one, body = plan.settings, json.dumps(_told(plan)).encode()
    if one.url is not None:
        return _posted(one, body)
    names = {
        f"FLOPWATCH_{key.upper()}": value for key, value in _told(plan).items() if isinstance(value, str)
    }
    try:
        ran = subprocess.run(  # noqa: S603 - the site's own command, without a shell
            list(one.command), input=body, capture_output=True, timeout=one.timeout_seconds, check=False,
            env={**os.environ, **names},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"failed: {error}"
    output = (ran.stdout + ran.stderr).decode(errors="replace").strip()[:MOST_OUTPUT]
    return f"exit {ran.returncode}" + (f": {output}" if output else "")


def _posted(one: ActionSettings, body: bytes) -> str:
    request = urllib.request.Request(  # noqa: S310 - http and https only, checked where it is read
        one.url or "", data=body, headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=one.timeout_seconds) as answer:  # noqa: S310 - the same
            return f"status {answer.status}"
    except urllib.error.HTTPError as error:
        return f"failed: status {error.code}"
    except OSError as error:
        return f"failed: {type(error).__name__}"


def _told(plan: Planned) -> dict[str, Any]:
    alert = plan.alert
    return {
        "action": plan.settings.name, "rule": alert.rule, "severity": alert.severity, "subject": plan.subject,
        "fingerprint": alert.fingerprint, "summary": alert.summary, **alert.labels,
    }  # fmt: skip


@dataclass(slots=True)
class Actions:
    """The actions of one collector; used by one thread."""

    settings: tuple[ActionSettings, ...]
    active: Callable[[], tuple[AlertRow, ...]]
    control: Control
    simulated: Callable[[], bool] = lambda: False
    """Of a simulated cluster nothing is done but the audit line."""
    _confirmed: dict[tuple[str, str], int] = field(default_factory=dict)

    def consider(self, now: float) -> None:
        """One round after an evaluation: count confirmations, and do what is due."""
        alerts = self.active()
        firing = {
            alert.fingerprint: alert.rule for alert in alerts if alert.state == "firing" and not alert.stale
        }
        self._confirmed = {
            (one.name, key): self._confirmed.get((one.name, key), 0) + 1
            for one in self.settings
            for key, rule in firing.items()
            if rule in one.rule
        }
        done = self.control.load(ACTION_KIND, Done)
        self._forget(done, now)
        for plan in planned(self.settings, alerts, self._confirmed, done.values(), now):
            self._do(plan, now)

    def _do(self, plan: Planned, now: float) -> None:
        """Note it before it is done: a process that dies meanwhile does nothing twice."""
        one, alert = plan.settings, plan.alert
        dry = one.dry_run or self.simulated()
        made = {
            "action": one.name, "fingerprint": alert.fingerprint, "fired_seconds": alert.fired_seconds or 0.0,
            "subject": plan.subject, "time_seconds": now, "dry_run": dry,
        }  # fmt: skip
        key = f"{one.name}@{alert.fingerprint}@{alert.fired_seconds}"
        self.control.save(ACTION_KIND, {key: Done(**made, outcome="begun")})  # type: ignore[arg-type]  # its fields
        outcome = "dry run: nothing was done" if dry else carried_out(plan)
        self.control.save(ACTION_KIND, {key: Done(**made, outcome=outcome)})  # type: ignore[arg-type]  # its fields
        log.warning("action %s on %s for %s: %s", one.name, plan.subject, alert.rule, outcome)
        if one.audit_file is not None:
            line = json.dumps({**made, "rule": alert.rule, "outcome": outcome}, sort_keys=True)
            with one.audit_file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def _forget(self, done: Mapping[str, Done], now: float) -> None:
        """Forget what is over for longer than any cooldown and day."""
        longest = max([DAY_SECONDS, *(one.cooldown_seconds for one in self.settings)])
        firing = {alert.fingerprint for alert in self.active()}
        old = [
            key
            for key, each in done.items()
            if now - each.time_seconds > longest and each.fingerprint not in firing
        ]
        if old:
            self.control.delete(ACTION_KIND, old)
