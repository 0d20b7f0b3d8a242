"""``[[budgets]]``: how much GPU time or money somebody may use in a period."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.settings import SettingError, section

BudgetPeriod = Literal["day", "week", "month", "quarter", "year"]
BudgetScope = Literal["site", "user", "account", "cluster", "group", "job"]
SCOPES: tuple[BudgetScope, ...] = ("user", "account", "cluster", "group", "job")


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetSettings:
    """One ``[[budgets]]``: whose, how much, and in which calendar period of the site's time zone."""

    name: str = ""
    user: str | None = None
    account: str | None = None
    cluster: str | None = None
    group: str | None = None
    """A ``[[costs.group]]`` of nodes."""
    job: str | None = None
    """A job's name; ``*`` for any text. At most one of these five; without any it is the whole site's."""
    amount: float | None = None
    """Money, in ``costs.currency``."""
    gpu_hours: float | None = None
    """Leased GPU-hours, instead of ``amount``: a quota."""
    period: BudgetPeriod = "month"
    warn_ratio: float = 0.8

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingError("budgets.name", self.name, "a name for each [[budgets]]")
        prefix = f"budgets.{self.name}"
        named = [scope for scope in SCOPES if getattr(self, scope) is not None]
        if len(named) > 1:
            raise SettingError(
                f"{prefix}.{named[1]}", getattr(self, named[1]), f"only one of {', '.join(SCOPES)}"
            )
        if (self.amount is None) == (self.gpu_hours is None):
            raise SettingError(f"{prefix}.amount", self.amount, "either amount or gpu_hours")
        limit = self.amount if self.amount is not None else self.gpu_hours
        if limit is None or not 0.0 < limit < 1e15:
            unit = "amount" if self.amount is not None else "gpu_hours"
            raise SettingError(f"{prefix}.{unit}", limit, "above 0")
        if not 0.0 < self.warn_ratio <= 1.0:
            raise SettingError(f"{prefix}.warn_ratio", self.warn_ratio, "a ratio above 0, at most 1")

    @property
    def scope(self) -> BudgetScope:
        """Whose it is."""
        return next((scope for scope in SCOPES if getattr(self, scope) is not None), "site")

    @property
    def who(self) -> str | None:
        """The name of whom or what it is about; None for the whole site."""
        return None if self.scope == "site" else str(getattr(self, self.scope))


def read_budgets(tables: Mapping[str, Any]) -> tuple[BudgetSettings, ...]:
    """All ``[[budgets]]`` of a loaded settings file.

    Raises:
        SettingError: an unknown setting, a value that is not allowed, or a name given twice.
    """
    entries = tables.get("budgets", [])
    if not isinstance(entries, list):
        raise SettingError("budgets", entries, "an array of tables, [[budgets]]")
    made = tuple(section(BudgetSettings, "budgets", {"budgets": entry}, {}) for entry in entries)
    names = [budget.name for budget in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError("budgets.name", twice, "a name for each [[budgets]] of its own")
    return made
