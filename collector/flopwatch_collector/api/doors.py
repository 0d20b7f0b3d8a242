"""The ways in: tokens, sessions, a trusted proxy, an identity provider, and the book of who came and changed what."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from flopwatch_collector.api.access import Access
from flopwatch_collector.api.audit import Audit
from flopwatch_collector.api.oidc import Provider, provider_of
from flopwatch_collector.api.sessions import Sessions
from flopwatch_collector.api.tokens import Tokens
from flopwatch_collector.config_sign_in import SignInSettings
from flopwatch_collector.store.port import Control


@dataclass(frozen=True, kw_only=True, slots=True)
class Doors:
    """What decides who comes in."""

    access: Access
    sessions: Sessions
    audit: Audit
    provider: Provider | None = None

    @property
    def settings(self) -> SignInSettings:
        """How people sign in."""
        return self.access.settings


def doors_of(
    control: Control,
    tokens: Tokens,
    settings: SignInSettings | None = None,
    clock: Callable[[], float] = time.time,
) -> Doors:
    """The ways in of a collector.

    Raises:
        SettingError: the provider's secret cannot be read, or the packages for it are not installed.
    """
    asked = settings or SignInSettings()
    sessions = Sessions(
        control, lasts_seconds=asked.session_seconds, idle_seconds=asked.idle_seconds, clock=clock
    )
    return Doors(
        access=Access(tokens, sessions, asked),
        sessions=sessions,
        audit=Audit(control, clock),
        provider=provider_of(asked),
    )
