"""How a reader looks at the dashboard: kept in the browser and the URL, never on the server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from flopwatch.query import Range
from flopwatch.viewer import EVERYBODY, Viewer
from flopwatch_dashboard import text, wording
from flopwatch_dashboard.text import Language
from flopwatch_dashboard.theme import PALETTES, Palette, Theme

RANGES: Mapping[str, float] = {
    "1h": 3_600.0,
    "6h": 21_600.0,
    "24h": 86_400.0,
    "7d": 604_800.0,
    "30d": 2_592_000.0,
}
DEFAULT_RANGE = "24h"
CUSTOM_RANGE = "custom"
LONGEST_RANGE_SECONDS = 366 * 86_400.0
SHORTEST_RANGE_SECONDS = 60.0
MOST_INPUTS = 100
TEAM_TABLES = ("ledger", "days")
"""What the API has by team too."""
LONGEST_INPUT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One reader's theme, language, time range and screen."""

    theme: Theme = "light"
    lang: Language = "en"
    range_name: str = DEFAULT_RANGE
    between: tuple[float, float] | None = None
    """Begin and end of a range that is none of ``RANGES``, epoch seconds; the name is ``CUSTOM_RANGE`` then."""
    zone: str | None = None
    """The time zone that the reader chose; None is the site's."""
    site_zone: str = "UTC"
    """The time zone of the site's days; it is never the browser that says so."""
    cluster: str | None = None
    team: str | None = None
    """Jobs, alerts and the ledger are of this team; the verdict and the curves stay the fleet's."""
    kiosk: bool = False
    width: int = 1366
    height: int = 768
    prefix: str = "/ui/"
    inputs: tuple[tuple[str, str], ...] = ()
    """What a page's forms hold, as the address has it: names with a dot in them, and values as they were typed."""
    viewer: Viewer = EVERYBODY
    """Who looks; it is never the browser that says so."""

    @property
    def palette(self) -> Palette:
        """The theme's colours."""
        return PALETTES[self.theme]

    @property
    def font_px(self) -> float:
        """Font size of chart text; it grows with the screen, a kiosk's with the smaller side."""
        if self.kiosk:
            return max(10.5, min(self.width / 118, self.height / 66))
        return max(11.0, min(20.0, self.width / 124))

    @property
    def narrow(self) -> bool:
        """Whether the screen is a phone's, as the style sheet has it."""
        return self.width <= 640

    @property
    def asked(self) -> Range:
        """The question to the Query port: about two points a pixel of a half-wide graph."""
        points = max(200, min(2_000, self.width))
        return Range(seconds=self.range_seconds, end_seconds=self.end, cluster=self.cluster, points=points)

    @property
    def range_seconds(self) -> float:
        """How long the shown range is."""
        return RANGES[self.range_name] if self.between is None else self.between[1] - self.between[0]

    @property
    def end(self) -> float | None:
        """Where the range ends; None is now."""
        return None if self.between is None else self.between[1]

    @property
    def shown_zone(self) -> str:
        """The time zone that times are shown in."""
        return self.zone or self.site_zone

    @property
    def shown_range(self) -> str:
        """``24h``, or begin and end of a range of the reader's own."""
        if self.between is None:
            return self.range_name
        return wording.span(*self.between, self.shown_zone, self.lang)

    @property
    def range_label(self) -> str:
        """The range in a word: ``24h``, or how long one of the reader's own is."""
        return self.range_name if self.between is None else self.duration(self.range_seconds)

    def t(self, key: str, **values: Any) -> str:
        """The text of ``key`` in the reader's language."""
        return text.t(self.lang, key, **values)

    def knows(self, key: str) -> bool:
        """Whether there is a text for a code that came with the data."""
        return text.known(key)

    def placeholders(self, key: str) -> tuple[str, ...]:
        """The names a text wants filled."""
        return text.placeholders(key)

    def code(self, table: str, code: str) -> str:
        """A code that came with the data in words, or itself where there is no text for it."""
        key = f"{table}.{code}"
        return self.t(key) if self.knows(key) else code

    def bucket(self, bucket: str) -> str:
        """A ledger bucket in words; its reason, where it has one, as the collector names it."""
        name, _, reason = bucket.partition(":")
        words = self.code("bucket", name)
        return f"{words} ({reason})" if reason else words

    def line(self, ratio: float | None) -> str:
        """A breakeven line as a percentage; None is *never*, 0 *always*."""
        if ratio is None:
            return self.t("econ.never")
        return wording.line_percent(ratio) if ratio > 0 else self.t("econ.always")

    def duration(self, seconds: float | None) -> str:
        """``45 s``, ``38 min``, ``5 h``, ``19 d`` in the reader's language."""
        seconds = wording.finite(seconds)
        if seconds is None:
            return wording.UNKNOWN
        size = max(0.0, seconds)
        for key, unit, below in (("second", 1, 90), ("minute", 60, 5_400), ("hour", 3_600, 172_800)):
            if size < below:
                return self.t(f"unit.{key}", n=f"{size / unit:.0f}")
        return self.t("unit.day", n=f"{size / 86_400:.0f}")

    def link(self, path: str, **query: str) -> str:
        """The address of a page with the reader's settings in it."""
        values = {"range": self.range_name, "theme": self.theme, "lang": self.lang, **self._between()}
        kept = {
            "zone": self.zone,
            "cluster": self.cluster,
            "team": self.team,
            "kiosk": "1" if self.kiosk else None,
        }
        values |= {name: value for name, value in kept.items() if value}
        return f"{self.prefix}{quote(path)}?{urlencode({**values, **query})}"

    def export(self, name: str) -> str:
        """The address of a CSV of the API with the range that is shown."""
        values = {"seconds": f"{self.range_seconds:.0f}"}
        if self.end is not None:
            values["end"] = f"{self.end:.0f}"
        if self.cluster:
            values["cluster"] = self.cluster
        if self.team and name in TEAM_TABLES:
            values["team"] = self.team
        return f"/api/v1/export/{name}.csv?{urlencode(values)}"

    def _between(self) -> dict[str, str]:
        if self.between is None:
            return {}
        begin, end = (wording.utc(edge) for edge in self.between)
        return {"from": begin, "to": end}


def from_browser(state: Mapping[str, Any], prefix: str) -> View:
    """The view of the browser's state; whatever is not allowed in it falls back to the default."""
    between = _between(state.get("from"), state.get("to"))
    return View(
        theme="dark" if state.get("theme") == "dark" else "light",
        lang="zh" if state.get("lang") == "zh" else "en",
        range_name=CUSTOM_RANGE if between is not None else _range(state.get("range")),
        between=between,
        zone=_zone(state.get("zone")),
        cluster=_name(state.get("cluster")),
        team=_name(state.get("team")),
        kiosk=state.get("kiosk") is True,
        width=_pixels(state.get("w"), 1366),
        height=_pixels(state.get("h"), 768),
        prefix=prefix,
        inputs=_inputs(state.get("inputs")),
    )


def _inputs(value: object) -> tuple[tuple[str, str], ...]:
    """Names and values of forms, each short and the first of its name, sorted so that like forms share an answer."""
    if not isinstance(value, list):
        return ()
    pairs = [pair for pair in value[:MOST_INPUTS] if isinstance(pair, list) and len(pair) == 2]
    typed = {str(name)[:LONGEST_INPUT]: str(given)[:LONGEST_INPUT] for name, given in reversed(pairs)}
    return tuple(sorted(typed.items()))


def _name(value: object) -> str | None:
    return str(value)[:LONGEST_INPUT] if value else None


def _between(begin: object, end: object) -> tuple[float, float] | None:
    """A range in whole minutes; None where it is none, or too short or long to be drawn."""
    edges = [
        value for value in (begin, end) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(edges) != 2 or not all(0 < edge < 1e11 for edge in edges):
        return None
    first, last = (edge // 60 * 60.0 for edge in edges)
    return (first, last) if SHORTEST_RANGE_SECONDS <= last - first <= LONGEST_RANGE_SECONDS else None


def _zone(value: object) -> str | None:
    return value if isinstance(value, str) and wording.is_zone(value) else None


def _range(value: object) -> str:
    return value if isinstance(value, str) and value in RANGES else DEFAULT_RANGE


def _pixels(value: object, default: int) -> int:
    """Screen sizes in steps of 32 pixels, so that readers with like screens share an answer."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 20_000:
        return default
    return max(320, round(value / 32) * 32)
