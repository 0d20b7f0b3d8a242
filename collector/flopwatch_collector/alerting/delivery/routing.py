"""Which channels an alert goes to. Pure."""

import fnmatch
from collections.abc import Iterable, Sequence

from flopwatch_collector.alerting.notices import NoticeAlert
from flopwatch_collector.config_alerts import RouteSettings


def channels_of(alert: NoticeAlert, routes: Sequence[RouteSettings], names: Iterable[str]) -> frozenset[str]:
    """The channels of the first route that matches, and of those after it while it says to go on.

    Without routes every channel; an alert that no route matches goes nowhere.
    """
    known = tuple(names)
    if not routes:
        return frozenset(known)
    found: set[str] = set()
    for route in routes:
        if not matches(route, alert):
            continue
        found.update(name for name in known if _any(route.channels, name))
        if not route.go_on:
            break
    return frozenset(found)


def matches(route: RouteSettings, alert: NoticeAlert) -> bool:
    """Whether a route is meant for an alert; an alert about several clusters is about each."""
    clusters = alert.labels.get("cluster", "").split(",")
    asked = (
        (route.cluster, clusters),
        (route.team, [alert.team]),
        (route.severity, [alert.labels.get("severity", "")]),
        (route.rule, [alert.labels.get("alertname", "")]),
    )
    return all(not patterns or any(_any(patterns, value) for value in values) for patterns, values in asked)


def _any(patterns: Iterable[str], value: str) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)
