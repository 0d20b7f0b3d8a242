"""Which of several collectors does the periodic work: the one that holds a lease in the control state.

The holder renews its lease well before it ends; one that cannot stops by itself before another may begin, and what
it still would write is refused in the transaction that writes it.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from flopwatch_collector.alerting.delivery.outbox import Channel
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.store.port import Control, Unavailable
from flopwatch_collector.store.sharing import SharedControl

T = TypeVar("T")
LEASE = "periodic"
RENEWALS = 4
"""So often a lease is renewed within its time."""
MARGIN_RATIO = 0.2
"""The holder takes its lease to end by this share of its length before it does."""

log = logging.getLogger(__name__)


class NotOnDuty(Unavailable):
    """Another collector does the periodic work now."""


class Duty(Protocol):
    """Whether this collector does the periodic work."""

    @property
    def renew_seconds(self) -> float | None:
        """How often to call ``renew``; None: never."""
        ...

    def renew(self) -> None:
        """Take or keep the duty, if nobody else has it."""
        ...

    def has(self) -> bool:
        """Whether it is this collector's now."""
        ...

    def resign(self) -> None:
        """Let another take it at once."""
        ...


class SoleDuty:
    """The duty of a collector that shares its control state with no other."""

    renew_seconds: float | None = None

    def renew(self) -> None:
        """Nothing to do."""

    def has(self) -> bool:
        """Always."""
        return True

    def resign(self) -> None:
        """Nothing to do."""


class LeasedDuty:
    """The duty of one of several collectors. Safe for threads."""

    def __init__(
        self, control: SharedControl, holder: str, seconds: float, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._control = control
        self._holder = holder
        self._seconds = seconds
        self._timer = timer
        self._until = float("-inf")
        self.renew_seconds: float | None = seconds / RENEWALS

    def renew(self) -> None:
        """Take or keep the lease, if nobody else has it.

        Raises:
            Unavailable: the control state cannot be reached; the lease ends in time by itself.
        """
        begun = self._timer()
        had = self.has()
        held = self._control.take_lease(LEASE, self._holder, self._seconds)
        self._until = begun + self._seconds * (1.0 - MARGIN_RATIO) if held else float("-inf")
        if held != had:
            log.info("collector %s %s the periodic work", self._holder, "takes over" if held else "has lost")

    def has(self) -> bool:
        """Whether the lease has not ended."""
        return self._timer() < self._until

    def resign(self) -> None:
        """Let the lease go, so that another collector need not wait for its end."""
        self._until = float("-inf")
        with contextlib.suppress(Unavailable):
            self._control.drop_lease(LEASE, self._holder)

    @contextlib.contextmanager
    def required(self) -> Iterator[None]:
        """A transaction in which the lease is known to be ours.

        Raises:
            NotOnDuty: it is not.
        """
        with self._control.exclusive():
            if not self._control.holds_lease(LEASE, self._holder):
                self._until = float("-inf")
                raise NotOnDuty("another collector does the periodic work")
            yield


class FencedControl:
    """The control state for the periodic work: whoever has lost the duty writes nothing."""

    def __init__(self, control: SharedControl, duty: LeasedDuty) -> None:
        self._control = control
        self._duty = duty

    def load(self, kind: str, type_: type[T]) -> dict[str, T]:
        """All documents of a kind."""
        return self._control.load(kind, type_)

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Insert or replace documents.

        Raises:
            NotOnDuty: another collector does the periodic work.
        """
        self.save_all({kind: documents})

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Insert or replace documents of several kinds in one transaction."""
        with self._duty.required():
            self._control.save_all(kinds)

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Remove documents."""
        with self._duty.required():
            self._control.delete(kind, keys)

    def replace(self, kind: str, key: str, expected: Any | None, document: Any) -> bool:
        """Save a document if it is still the expected one."""
        with self._duty.required():
            return self._control.replace(kind, key, expected, document)

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """As the control state does."""
        return self._control.take_lease(name, holder, seconds)

    def drop_lease(self, name: str, holder: str) -> None:
        """As the control state does."""
        self._control.drop_lease(name, holder)

    def close(self) -> None:
        """Nothing to do: the control state is closed by whom it belongs to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FencedChannel:
    """A channel through which only the collector on duty sends."""

    channel: Channel
    duty: Duty = field(default_factory=SoleDuty)

    @property
    def name(self) -> str:
        """The channel's."""
        return self.channel.name

    @property
    def privacy_form(self) -> str:
        """The channel's."""
        return self.channel.privacy_form

    @property
    def loopback(self) -> bool:
        """The channel's."""
        return self.channel.loopback

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Deliver.

        Raises:
            DeliveryFailed: another collector is on duty; it sends what waits.
        """
        if not self.duty.has():
            raise DeliveryFailed("another collector sends alerts now")
        self.channel.send(body, delivery_id)


def of(control: Control, holder: str, seconds: float) -> "tuple[Duty, Control]":
    """The duty, and the control state for the work that belongs to it."""
    if not holder or not getattr(control, "shared", False):
        return SoleDuty(), control
    shared = cast("SharedControl", control)
    duty = LeasedDuty(shared, holder, seconds)
    return duty, FencedControl(shared, duty)
