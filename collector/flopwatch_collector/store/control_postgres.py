"""The control state in PostgreSQL: JSON documents that several collectors share, and who may do the periodic work."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from flopwatch_collector.store.documents import is_still
from flopwatch_collector.store.postgres import PostgresTransactions
from flopwatch_collector.store.sharing import Changes
from flopwatch_collector.store.transactions import Statements

T = TypeVar("T")
AREA = 1
FORGOTTEN_DAYS = 30
"""A collector that has not looked for so long must be started anew to know what was deleted meanwhile."""
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS flopwatch_document (
  kind TEXT NOT NULL, key TEXT NOT NULL, body BYTEA, change BIGINT NOT NULL,
  changed_at TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (kind, key))""",
    "CREATE INDEX IF NOT EXISTS flopwatch_document_change ON flopwatch_document (change)",
    "CREATE SEQUENCE IF NOT EXISTS flopwatch_change",
    """CREATE TABLE IF NOT EXISTS flopwatch_lease (
  name TEXT PRIMARY KEY, holder TEXT NOT NULL, until TIMESTAMPTZ NOT NULL, term BIGINT NOT NULL)""",
)
_SAVE = """INSERT INTO flopwatch_document (kind, key, body, change) VALUES (?, ?, ?, nextval('flopwatch_change'))
ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, change = excluded.change, changed_at = now()"""
_DELETE = """UPDATE flopwatch_document SET body = NULL, change = nextval('flopwatch_change'), changed_at = now()
WHERE kind = ? AND key = ? AND body IS NOT NULL"""
_FORGET = f"""DELETE FROM flopwatch_document
WHERE body IS NULL AND changed_at < now() - interval '{FORGOTTEN_DAYS} days'"""
_NEWEST = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM flopwatch_change"
_TAKE = """INSERT INTO flopwatch_lease AS held VALUES (?, ?, clock_timestamp() + ? * interval '1 second', 1)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until,
  term = held.term + (CASE WHEN held.holder = excluded.holder THEN 0 ELSE 1 END)
WHERE held.holder = excluded.holder OR held.until <= clock_timestamp()"""


class PostgresControl:
    """Documents of all collectors; every save is one durable transaction, and they follow one another.

    Deleted documents leave a mark for the other collectors' :meth:`changes`.

    Raises:
        Unavailable: the server cannot be reached.
    """

    shared = True

    def __init__(self, url: str) -> None:
        self._database = PostgresTransactions(url, AREA, _SCHEMA)

    def load(self, kind: str, type_: type[T]) -> dict[str, T]:
        """All documents of a kind, by key.

        Raises:
            ValueError: a document does not fit the type; kind and key are named.
        """
        with self._database.reading() as statements:
            rows = statements.ask(
                "SELECT key, body FROM flopwatch_document WHERE kind = ? AND body IS NOT NULL "
                'ORDER BY key COLLATE "C"',
                (kind,),
            )
        decoder = msgspec.json.Decoder(type_)
        return {key: _decoded(decoder, kind, key, body) for key, body in rows}

    def save(self, kind: str, documents: Mapping[str, Any]) -> None:
        """Insert or replace documents in one transaction."""
        self.save_all({kind: documents})

    def save_all(self, kinds: Mapping[str, Mapping[str, Any]]) -> None:
        """Insert or replace documents of several kinds in one transaction."""
        encode = msgspec.json.Encoder().encode
        rows = [
            (kind, key, encode(document))
            for kind, documents in kinds.items()
            for key, document in documents.items()
        ]
        if rows:
            with self._database.writing() as statements:
                statements.run_many(_SAVE, rows)

    def delete(self, kind: str, keys: Iterable[str]) -> None:
        """Remove documents; keys that are not there are ignored."""
        rows = [(kind, key) for key in keys]
        if rows:
            with self._database.writing() as statements:
                statements.run_many(_DELETE, rows)
                statements.run(_FORGET)

    def replace(self, kind: str, key: str, expected: Any | None, document: Any) -> bool:
        """Save a document if it is still the expected one (None: if there is none); whether it was saved."""
        with self._database.writing() as statements:
            found = statements.ask(
                "SELECT body FROM flopwatch_document WHERE kind = ? AND key = ? AND body IS NOT NULL",
                (kind, key),
            )
            if not is_still(bytes(found[0][0]) if found else None, expected):
                return False
            statements.run(_SAVE, (kind, key, msgspec.json.encode(document)))
            return True

    def take_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Become or stay the one holder of a lease until ``seconds`` from now, by the server's clock."""
        with self._database.writing() as statements:
            return statements.run(_TAKE, (name, holder, seconds)) == 1

    def drop_lease(self, name: str, holder: str) -> None:
        """Let a lease go before its time; nothing happens where another holds it."""
        with self._database.writing() as statements:
            statements.run(
                "UPDATE flopwatch_lease SET until = clock_timestamp() WHERE name = ? AND holder = ?",
                (name, holder),
            )

    def holds_lease(self, name: str, holder: str) -> bool:
        """Whether the holder has the lease now; within :meth:`exclusive` it stays so until the end."""
        with self._database.reading() as statements:
            return bool(
                statements.ask(
                    "SELECT 1 FROM flopwatch_lease WHERE name = ? AND holder = ? AND until > clock_timestamp()",
                    (name, holder),
                )
            )

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """One transaction for all that this thread does with the control state; no other collector writes meanwhile.

        Raises:
            Unavailable: the server cannot be reached, or others have held it for too long.
        """
        with self._database.writing():
            yield

    def changes(self, kinds: Mapping[str, type[Any]], since: int) -> Changes:
        """Documents saved and deleted after change number ``since``, by any collector."""
        names = list(kinds)
        with self._database.reading() as statements:
            rows = _changed(statements, names, since)
        decoders = {kind: msgspec.json.Decoder(type_) for kind, type_ in kinds.items()}
        saved: dict[str, dict[str, Any]] = {}
        deleted: dict[str, list[str]] = {}
        for kind, key, body, _ in rows:
            if body is None:
                deleted.setdefault(kind, []).append(key)
            else:
                saved.setdefault(kind, {})[key] = _decoded(decoders[kind], kind, key, body)
        return Changes(number=max([since, *(row[3] for row in rows)]), saved=saved, deleted=deleted)

    def newest_change(self) -> int:
        """The number of the newest change; within :meth:`exclusive` nobody makes another."""
        with self._database.reading() as statements:
            return int(statements.ask(_NEWEST)[0][0])

    def close(self) -> None:
        """Let the database go."""
        self._database.close()


def _changed(statements: Statements, kinds: list[str], since: int) -> list[tuple[Any, ...]]:
    marks = ", ".join("?" for _ in kinds)
    return statements.ask(
        f"SELECT kind, key, body, change FROM flopwatch_document WHERE change > ? AND kind IN ({marks}) "
        "ORDER BY change",
        (since, *kinds),
    )


def _decoded(decoder: "msgspec.json.Decoder[T]", kind: str, key: str, body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as problem:
        raise ValueError(f"control state {kind}/{key}: {problem}") from problem
