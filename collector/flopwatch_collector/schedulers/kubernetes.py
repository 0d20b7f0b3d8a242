"""What the Kubernetes API says: each collection listed once, then watched from where the list ended."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from flopwatch_collector.schedulers.asking import Answered, Server
from flopwatch_collector.schedulers.kubernetes_objects import (
    Labels,
    Owner,
    Row,
    controller,
    gpus_of_pod,
    job_from_pod,
    limits_of,
    node_from,
    within,
)
from flopwatch_collector.schedulers.reading import Reading, ScheduledJob, SchedulerUnreachable

T = TypeVar("T")
PAGE = 500
GONE = 410
MOST_OWNERS_UP = 8
MOST_PROBLEMS = 5
MOST_LINE_BYTES = 16 << 20


@dataclass(kw_only=True)
class Collection:
    """All objects of one kind."""

    server: Server
    path: str
    watch_seconds: int
    keep: Callable[[Row], bool] = lambda _: True
    """Which objects are remembered."""
    version: str | None = None
    objects: dict[str, Row] = field(default_factory=dict)

    def refresh(self) -> dict[str, Row]:
        """Bring the objects up to date; those that were deleted since, by UID, as they were last.

        Raises:
            SchedulerUnreachable: the API does not answer, or refuses.
        """
        if self.version is None:
            return self._list()
        gone: dict[str, Row] = {}
        try:
            self._watch(gone)
        except Answered as error:
            if error.status != GONE:
                raise
            return {**gone, **self._list()}
        return gone

    def _list(self) -> dict[str, Row]:
        found: dict[str, Row] = {}
        more = ""
        while True:
            page = self.server.document(f"{self.path}?limit={PAGE}{more}")
            for row in page.get("items") or ():
                self._take(found, row)
            following = within(page, "metadata", "continue")
            if not following:
                break
            more = f"&continue={quote(str(following), safe='')}"
        gone = {uid: row for uid, row in self.objects.items() if uid not in found}
        self.objects, self.version = found, str(within(page, "metadata", "resourceVersion") or "")
        return gone

    def _watch(self, gone: dict[str, Row]) -> None:
        """Take in what changed since; ends when the server ends it."""
        question = (
            f"{self.path}?watch=1&allowWatchBookmarks=true&resourceVersion={quote(self.version or '', safe='')}"
            f"&timeoutSeconds={self.watch_seconds}"
        )
        with self.server.open(question) as stream:
            for change in _changes(stream):
                self._change(change, gone)

    def _change(self, change: Row, gone: dict[str, Row]) -> None:
        kind, row = change.get("type"), change.get("object")
        if not isinstance(row, Mapping):
            raise SchedulerUnreachable(f"{self.path} answers a change without an object")
        if kind == "ERROR":
            code = row.get("code")
            self.version = None if code == GONE else self.version
            raise Answered(f"{self.path}: {row.get('message')}", code if isinstance(code, int) else 500)
        self.version = str(within(row, "metadata", "resourceVersion") or self.version)
        if kind == "DELETED":
            uid = str(within(row, "metadata", "uid"))
            if self.objects.pop(uid, None) is not None:
                gone[uid] = row
        elif kind in ("ADDED", "MODIFIED"):
            self._take(self.objects, row)

    def _take(self, objects: dict[str, Row], row: Row) -> None:
        uid = within(row, "metadata", "uid")
        if isinstance(uid, str) and self.keep(row):
            objects[uid] = row


def _changes(stream: Any) -> Iterator[Row]:
    """One JSON object a line."""
    while line := stream.readline(MOST_LINE_BYTES):
        if not line.strip():
            continue
        try:
            change = json.loads(line)
        except ValueError as error:
            raise SchedulerUnreachable("a watch breaks off within a line") from error
        if isinstance(change, Mapping):
            yield change


@dataclass(kw_only=True)
class Kubernetes:
    """Reads one cluster."""

    server: Server
    labels: Labels = field(default_factory=Labels)
    watch_seconds: int = 5
    _owners: dict[str, Owner] = field(default_factory=dict, repr=False)
    _names: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        resources = self.labels.resources
        self._pods = self._collection("/api/v1/pods", lambda pod: gpus_of_pod(pod, resources) > 0)
        self._nodes = self._collection("/api/v1/nodes")
        self._quotas = self._collection("/api/v1/resourcequotas")

    def _collection(self, path: str, keep: Callable[[Row], bool] = lambda _: True) -> Collection:
        seconds = self.watch_seconds if path.endswith("/pods") else 1
        return Collection(server=self.server, path=path, watch_seconds=seconds, keep=keep)

    def read(self, now: float) -> Reading:
        """All that the API says now.

        Raises:
            SchedulerUnreachable: the pods cannot be read; what else cannot be read is missing in the reading.
        """
        problems: list[str] = []
        gone = self._pods.refresh()
        jobs = [self._job(pod, None, problems) for pod in self._pods.objects.values()]
        jobs += [self._job(pod, now, problems) for pod in gone.values()]
        alive = {uid for pod in self._pods.objects.values() for uid in (_owner_uid(pod),) if uid}
        self._owners = {uid: owner for uid, owner in self._owners.items() if uid in alive}
        nodes = self._refreshed(self._nodes, problems)
        quotas = self._refreshed(self._quotas, problems)
        return Reading(
            time_seconds=now,
            jobs=tuple(job for job in jobs if job is not None),
            nodes=None if nodes is None else self._scheduled_nodes(nodes, problems),
            limits=None if quotas is None else limits_of(quotas, self.labels),
            problems=tuple(problems[:MOST_PROBLEMS]),
        )

    def _refreshed(self, collection: Collection, problems: list[str]) -> list[Row] | None:
        try:
            collection.refresh()
        except SchedulerUnreachable as error:
            problems.append(str(error))
            return None
        return list(collection.objects.values())

    def _job(self, pod: Row, deleted: float | None, problems: list[str]) -> ScheduledJob | None:
        try:
            return job_from_pod(pod, self._topmost(pod), self.labels, deleted)
        except ValueError as error:
            problems.append(f"a pod is left out: {error}")
            return None

    def _scheduled_nodes(self, rows: list[Row], problems: list[str]) -> tuple[Any, ...]:
        result = []
        for row in rows:
            try:
                found = node_from(row, self.labels)
            except ValueError as error:
                problems.append(f"a node is left out: {error}")
                continue
            if found is not None:
                result.append(found)
        return tuple(result)

    def _topmost(self, pod: Row) -> Owner | None:
        """The controller of the pod's controller, and so on; where one may not be read, the last that is known."""
        first = controller(pod)
        if first is None or not isinstance(first.get("uid"), str):
            return None
        if first["uid"] not in self._owners:
            self._owners[first["uid"]] = self._climbed(first, str(within(pod, "metadata", "namespace") or ""))
        return self._owners[first["uid"]]

    def _climbed(self, reference: Row, namespace: str) -> Owner:
        for _ in range(MOST_OWNERS_UP):
            try:
                above = controller(self._object(reference, namespace))
            except Answered:
                break
            if above is None:
                break
            reference = above
        return Owner(
            uid=str(reference.get("uid")), kind=str(reference.get("kind")), name=str(reference.get("name"))
        )

    def _object(self, reference: Row, namespace: str) -> Row:
        version = str(reference.get("apiVersion"))
        base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        if version not in self._names:
            listed = self.server.document(base).get("resources") or ()
            self._names[version] = {
                str(each.get("kind")): str(each.get("name"))
                for each in listed
                if "/" not in str(each.get("name"))
            }
        plural = self._names[version].get(str(reference.get("kind")))
        if plural is None:
            raise Answered(f"{base} has no {reference.get('kind')}", 404)
        path = f"{base}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(str(reference.get('name')), safe='')}"
        return self.server.document(path)


def _owner_uid(pod: Row) -> str | None:
    found = controller(pod)
    return None if found is None else str(found.get("uid"))
