"""Steps: from the jobs' own logs and from the SDK's messages, with what both say of the run."""

import dataclasses
import logging
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from flopwatch.wire import (
    Finding,
    FollowedLog,
    JobSighting,
    Phase,
    RunFacts,
    SessionMark,
    SourceKind,
    StepRecord,
)
from flopwatch_agent.candidates import Candidates
from flopwatch_agent.followers import BYTES_A_FILE, Followers
from flopwatch_agent.job_progress import JobProgress
from flopwatch_agent.log_file import FileIdentity, LogFile
from flopwatch_agent.log_finder import READ_PERMISSION, LogFinder, Output
from flopwatch_agent.log_follow import NOTHING, Follower, Position, Reader
from flopwatch_agent.positions import Positions
from flopwatch_agent.remembered import Remembered
from flopwatch_agent.sdk_messages import MessageError, SdkMessage, understood
from flopwatch_agent.sdk_socket import Datagram
from flopwatch_agent.source import ObservedJob, Readings
from flopwatch_agent.trainers import rows, to_wire

logger = logging.getLogger(__name__)

MAX_FILES_A_JOB = 16
MAX_LEFT = 500
LET_GO_SECONDS = 300.0
"""A file that the job does not write any more is followed so much longer."""
BIRTH_SLACK = 1.0
WAITING = "steps"
NOWHERE = "no output file of its processes was found: report steps with flopwatch.StepReporter"
UNFIT = "the agent failed on what it holds; its own log says how"
SHARED = "{count} live jobs write this file, so no row can be told apart: give each run its own log"


@dataclass(slots=True)
class Collected:
    """What one read gathers."""

    steps: list[StepRecord] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    sessions: list[SessionMark] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class StepsSource:
    """Follows the logs of the jobs and takes the SDK's messages."""

    name = "steps"

    def __init__(
        self, *, finder: LogFinder, positions: Positions, new_reader: Callable[[], Reader], node: str
    ) -> None:
        self._finder = finder
        self._positions = positions
        self._new_reader = new_reader
        self._node = node
        self._followers = Followers()
        self._progress: dict[str, JobProgress] = {}
        self._problems: dict[tuple[str, str], FollowedLog] = {}
        self._left: dict[str, Position] = {}
        self._mixed: Remembered[str] = Remembered(MAX_LEFT)
        """Files that several jobs wrote at once."""
        self._unfit: Remembered[FileIdentity] = Remembered(MAX_LEFT)
        """Files that the reader failed on; they are not begun again."""
        self._candidates = Candidates()
        self.sdk_claims = 0
        """Claims of identity in SDK messages that were ignored."""
        self.sdk_malformed = 0
        """SDK messages that were not understood."""

    def look(
        self, now: float, jobs: tuple[ObservedJob, ...], configured: Mapping[str, tuple[Output, ...]]
    ) -> tuple[Finding, ...]:
        """Find the files of the live jobs: begin to follow new ones, leave those that two jobs share.

        Of a file that was another job's, the rows after what was read for that one are this one's.

        ``configured`` are logs that the settings name, by job.
        """
        wanted: dict[FileIdentity, list[tuple[ObservedJob, Output]]] = {}
        beside: dict[FileIdentity, list[tuple[ObservedJob, Output]]] = {}
        self._problems = {}
        live = frozenset(job.sighting.ref for job in jobs)
        for job in jobs:
            progress = self._progress.setdefault(job.sighting.ref, JobProgress())
            is_open = not progress.has_times and self._candidates.wants(job.sighting.ref)
            found = self._finder.find(job, now, beside=is_open)
            for output in found.beside:
                beside.setdefault(output.identity, []).append((job, output))
            files = {item.identity: item for item in (*configured.get(job.sighting.ref, ()), *found.files)}
            progress.reason = None if files else found.reason or NOWHERE
            ordered = sorted(files.values(), key=lambda item: item.rank if item.rank is not None else -1)
            for output in ordered[:MAX_FILES_A_JOB]:
                wanted.setdefault(output.identity, []).append((job, output))
        findings: list[Finding] = []
        for identity, writers in wanted.items():
            if len(writers) > 1:
                findings.extend(self._shared(identity, writers))
            else:
                self._follow_for(*writers[0], live=live)
        self._consider(beside, wanted.keys())
        self._let_go(now, wanted.keys() | beside.keys())
        return tuple(findings)

    def _consider(
        self, beside: Mapping[FileIdentity, list[tuple[ObservedJob, Output]]], logs: Set[FileIdentity]
    ) -> None:
        """Begin to follow files of metrics that are one job's and no log."""
        for identity, writers in beside.items():
            known = identity in self._followers or identity in logs or not self._candidates.takes(identity)
            if len(writers) == 1 and not known:
                self._follow(*writers[0], is_metrics=True)

    def _let_go(self, now: float, written: Set[FileIdentity]) -> None:
        """Leave the files that no job writes any more and that bring nothing."""
        for identity, follower in self._followers:
            if identity in written:
                follower.wanted_seconds = now
            elif now - max(follower.wanted_seconds, follower.last_read_seconds or 0.0) > LET_GO_SECONDS:
                logger.info("%s is written no more", follower.file.path)
                self._leave(follower)

    def read(self, now: float) -> Readings:
        """The rows that were written since the last read."""
        collected = Collected()
        for polled in self._followers.poll(now):
            if isinstance(polled.error, OSError):
                self._lose(polled.follower, f"it cannot be read any more: {polled.error.strerror}")
            elif polled.error is not None:
                self._unfit.add(polled.identity)
                self._lose(polled.follower, f"the agent failed on what it holds: {polled.error}")
            else:
                self._take(polled.identity, polled.follower, polled.output, (now, collected))
        self._settle(now, collected)
        return as_readings(collected)

    def needs_arrivals(self, now: float) -> bool:
        """Whether a log at work is dated by when it is read."""
        return self._followers.needs_arrivals(now)

    def hear(self, messages: list[tuple[Datagram, str, int]]) -> Readings:
        """What SDK messages say; each comes with the job and the start of its sender, as the kernel names them."""
        collected = Collected()
        for datagram, job, start_ticks in messages:
            source_id = f"sdk:{self._node}:{datagram.pid}:{start_ticks}"
            try:
                message = understood(datagram.body, job, source_id)
            except (MessageError, ValueError) as error:
                self.sdk_malformed += 1
                logger.debug("an SDK message of pid %d was ignored: %s", datagram.pid, error)
                continue
            self._take_in(message, job, collected)
        return as_readings(collected)

    def end(self, jobs: tuple[ObservedJob, ...], now: float) -> Readings:
        """Read the rest of the logs of jobs that ended, and let them go."""
        collected = Collected()
        ended = {job.sighting.ref for job in jobs}
        of_ended = [follower for ref in ended for follower in self._followers.of_job(ref)]
        for follower in of_ended:
            self._read_rest(follower, now, collected)
        self._settle(now, collected)
        for ref in ended:
            for follower, output in self._candidates.last(ref):
                self._convert(follower, output, collected)
            self._finder.forget(ref)
        for ref in ended:
            for follower in self._followers.of_job(ref):
                self._leave(follower)
        return as_readings(collected)

    def _read_rest(self, follower: Follower, now: float, collected: Collected) -> None:
        identity = follower.file.identity
        try:
            while True:
                output, taken = follower.poll(now, BYTES_A_FILE)
                self._take(identity, follower, output, (now, collected))
                if not taken:
                    break
            self._take(identity, follower, follower.finish(now), (now, collected))
        except OSError as error:
            logger.info("the end of %s was not read: %s", follower.file.path, error)

    def _take(
        self, identity: FileIdentity, follower: Follower, output: rows.Output, into: tuple[float, Collected]
    ) -> None:
        """Send what a file gave, or hold it back where it is a candidate."""
        now, collected = into
        if self._candidates.is_held(identity):
            if output != NOTHING:
                self._candidates.hold(identity, output, now)
            return
        if follower.has_times and not follower.is_metrics:
            self._progress.setdefault(follower.job, JobProgress()).has_times = True
        self._convert(follower, output, collected)

    def _settle(self, now: float, collected: Collected) -> None:
        """Decide between a job's log and the files of metrics beside it, where it can be told."""
        sent, dropped = self._candidates.settle(
            now, lambda ref: self._progress.setdefault(ref, JobProgress()).has_times
        )
        for follower, output in sent:
            self._convert(follower, output, collected)
        for follower in dropped:
            self._leave(follower, keep=False)

    def has_steps(self, ref: str) -> bool:
        """Whether a step of a job was seen."""
        progress = self._progress.get(ref)
        return progress is not None and progress.has_steps

    def forget(self, ref: str) -> None:
        """Drop what is known of a job whose end was told."""
        self._progress.pop(ref, None)

    def completed(self, sighting: JobSighting) -> JobSighting:
        """The sighting with what logs and SDK said of the run."""
        progress = self._progress.get(sighting.ref)
        if progress is None:
            return sighting
        followed = self._followers.of_job(sighting.ref)
        paths = [item.file.path for item in sorted(followed, key=lambda item: -item.rows_seen)]
        words = progress.words
        waiting = None if progress.has_steps else WAITING if paths else progress.reason
        return dataclasses.replace(
            sighting,
            run=tuple(progress.run.values()),
            waiting_for=waiting,
            log_path=paths[0] if paths else sighting.log_path,
            name=words.name or sighting.name,
            kind=words.kind or sighting.kind,
            mfu_target_ratio=sighting.mfu_target_ratio or words.mfu_target_ratio,
        )

    def add_run(self, ref: str, facts: RunFacts) -> None:
        """Keep what a configuration file said of a job's run."""
        self._progress.setdefault(ref, JobProgress()).add_run(facts)

    def logs(self) -> tuple[FollowedLog, ...]:
        """Every followed log with its lag, and those that could not be followed with the reason."""
        followed = (
            FollowedLog(
                job=follower.job,
                path=follower.file.path,
                alive=True,
                lag_bytes=follower.lag_bytes(),
                last_read_seconds=follower.last_read_seconds,
                problem=follower.problem,
            )
            for _, follower in self._followers
        )
        return (*followed, *self._problems.values())

    def last_steps(self) -> tuple[StepRecord, ...]:
        """The last step of every job."""
        return tuple(item.last_step for item in self._progress.values() if item.last_step is not None)

    def positions(self) -> dict[str, Position]:
        """How far each file was read, to be kept with the batch that carries its rows."""
        sent = (item for item in self._followers if not self._candidates.is_held(item[0]))
        found = ((str(identity), follower.position()) for identity, follower in sent)
        return {**self._left, **{key: position for key, position in found if position is not None}}

    def _shared(self, identity: FileIdentity, writers: list[tuple[ObservedJob, Output]]) -> list[Finding]:
        follower = self._followers.get(identity)
        if follower is not None:
            self._leave(follower)
        self._mixed.add(str(identity))
        text = SHARED.format(count=len(writers))
        for job, output in writers:
            self._progress[job.sighting.ref].reason = text
            self._problem(job.sighting.ref, output.path, text)
        return [Finding(job=job.sighting.ref, code="shared_log", text=text) for job, _ in writers]

    def _follow_for(self, job: ObservedJob, output: Output, *, live: Set[str]) -> None:
        """Follow a file for the job that writes it now; one that has ended reads its rest before it goes over."""
        follower = self._followers.get(output.identity)
        if follower is not None and follower.job != job.sighting.ref and follower.job in live:
            self._leave(follower)
            follower = None
        if follower is None:
            self._follow(job, output)

    def _follow(self, job: ObservedJob, output: Output, *, is_metrics: bool = False) -> None:
        ref = job.sighting.ref
        if output.identity in self._unfit:
            self._problem(ref, output.path, UNFIT)
            return
        try:
            file = output.stream or LogFile(output.way, output.path)
        except OSError as error:
            if is_metrics:
                logger.debug("%s cannot be opened: %s", output.path, error)
                return
            why = f"cannot be opened: {error.strerror or error}"
            why += f"; {READ_PERMISSION}" if isinstance(error, PermissionError) else ""
            self._problem(ref, output.path, f"it {why}")
            self._progress[ref].reason = f"its log {output.path} {why}"
            return
        if is_metrics and file.identity != output.identity:
            file.close()  # another file took the name after it was looked at
            return
        start = job.sighting.start_time_seconds or 0.0
        of_this_run = (
            not output.appended
            or not job.processes
            or (file.born_seconds is not None and file.born_seconds >= start - BIRTH_SLACK)
        )
        follower = Follower(
            file=file,
            job=ref,
            reader=self._new_reader(),
            run_start_seconds=start,
            history_end=0 if of_this_run else file.size_at_open,
            is_metrics=is_metrics,
        )
        self._go_on(follower, job)
        self._followers.add(follower)
        if is_metrics:
            self._candidates.add(follower, is_whole=is_whole(job.sighting))
        logger.info("following %s for %s", output.path, ref)

    def _go_on(self, follower: Follower, job: ObservedJob) -> None:
        """Begin where the file was left, for this job or for the one whose it was."""
        file, name = follower.file, str(follower.file.identity)
        left = self._left.get(name)
        kept = left or self._positions.get(name)
        if kept is None or kept.source_id != file.source_id():
            return
        may_be_older = follower.history_end > 0 or not job.processes
        if kept.job == follower.job:
            follower.sent_until, follower.history_end = kept.offset, kept.history_end
        elif left is not None and may_be_older and name not in self._mixed:
            follower.history_end = left.offset if left.offset <= file.size_at_open else 0

    def _lose(self, follower: Follower, why: str) -> None:
        logger.warning("%s: %s", follower.file.path, why)
        self._problem(follower.job, follower.file.path, why)
        self._leave(follower)

    def _leave(self, follower: Follower, *, keep: bool = True) -> None:
        """Follow a file no more; should the same job come back to it, it goes on where it was."""
        identity = follower.file.identity
        position = follower.position() if keep and not self._candidates.is_held(identity) else None
        self._candidates.forget(identity)
        if position is not None:
            self._left[str(identity)] = position
        while len(self._left) > MAX_LEFT:
            del self._left[next(iter(self._left))]
        self._followers.remove(follower)

    def _problem(self, ref: str, path: str, why: str) -> None:
        self._problems[ref, path] = FollowedLog(job=ref, path=path, alive=False, problem=why)

    def _convert(self, follower: Follower, output: rows.Output, collected: Collected) -> None:
        progress = self._progress.setdefault(follower.job, JobProgress())
        source_id = follower.source_id or ""
        source: SourceKind = "file" if follower.is_metrics else "log"
        for facts in output.runs:
            progress.add_run(dataclasses.replace(facts, source=source) if follower.is_metrics else facts)
        records = to_wire.steps(output, job=follower.job, source_id=source_id, source=source)
        if records:
            progress.has_steps, progress.last_step = True, records[-1]
        collected.steps.extend(records)
        collected.phases.extend(to_wire.phases(output, job=follower.job, source_id=source_id, source=source))
        collected.sessions.extend(to_wire.sessions(output, job=follower.job, source_id=source_id))
        collected.findings.extend(to_wire.findings(output, job=follower.job))

    def _take_in(self, message: SdkMessage, job: str, collected: Collected) -> None:
        progress = self._progress.setdefault(job, JobProgress())
        self.sdk_claims += message.claims
        if message.step is not None:
            progress.has_steps = progress.has_times = True
            progress.last_step = message.step
            collected.steps.append(message.step)
        if message.phase is not None:
            collected.phases.append(message.phase)
        if message.run is not None:
            progress.add_run(message.run)
        if message.words is not None:
            progress.words = message.words


def is_whole(sighting: JobSighting) -> bool:
    """Whether all ranks of the job are on this node, as far as is known."""
    return sighting.world_size is None or sighting.world_size <= max(1, len(sighting.ranks))


def as_readings(collected: Collected) -> Readings:
    """What was gathered, as a source gives it."""
    return Readings(**{name: tuple(getattr(collected, name)) for name in Collected.__slots__})
