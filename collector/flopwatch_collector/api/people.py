"""People whom a proxy or a provider has signed in: their role and teams, from their groups. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from flopwatch_collector.api.tokens import Role
from flopwatch_collector.config_sign_in import SignInSettings

LONGEST_NAME = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Somebody who may come in."""

    name: str
    role: Role
    teams: tuple[str, ...] = ()
    """Whose jobs they see; none: everybody's."""


def person_of(name: str, groups: Iterable[str], settings: SignInSettings) -> Person | None:
    """The person of this name with these groups; None where they may not come in.

    The highest role of any group counts. Who is in a group of ``team_groups`` and no more than a viewer sees the
    jobs of their teams.
    """
    mine = set(groups)
    role: Role | None = None
    for candidate, allowed in (
        ("admin", settings.admin_groups),
        ("operator", settings.operator_groups),
        ("viewer", settings.viewer_groups),
    ):
        if role is None and mine & set(allowed):
            role = candidate  # type: ignore[assignment]  # one of the roles
    if role is None and settings.default_role != "none":
        role = settings.default_role
    shown = shown_name(name)
    if role is None or not shown:
        return None
    teams = tuple(sorted({team for group, team in settings.team_groups.items() if group in mine}))
    return Person(name=shown, role=role, teams=teams if role == "viewer" else ())


def shown_name(name: str) -> str:
    """A name as it is kept: printable, of bounded length."""
    return "".join(letter for letter in name.strip() if letter.isprintable())[:LONGEST_NAME]


def groups_of(text: str) -> tuple[str, ...]:
    """Groups in a header: separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
