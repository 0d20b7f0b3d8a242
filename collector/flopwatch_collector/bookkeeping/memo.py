"""What is remembered of jobs beyond any window of rows: their first step, and where launches went on from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flopwatch_collector.compute.timeline import Before, JobTimeline
from flopwatch_collector.store.port import Control

KIND = "accounting_job"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobMemo:
    """A job's memo as it is kept."""

    first_step_seconds: float | None = None
    resumes: dict[str, int] = field(default_factory=dict)
    """By launch number, as text: the step it went on from."""


class Memos:
    """The memos of all jobs, durable. Used by the thread that ticks; reads may come from any."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._memos = control.load(KIND, JobMemo)
        self._changed: set[str] = set()

    def before(self, job: int) -> Before:
        """What is known of a job from earlier."""
        memo = self._memos.get(str(job), JobMemo())
        resumes = {int(launch): step for launch, step in memo.resumes.items()}
        return Before(first_step_seconds=memo.first_step_seconds, resumes=resumes)

    def learn(self, timelines: Mapping[int, JobTimeline]) -> tuple[set[int], set[int]]:
        """Take what timelines show.

        Returns jobs of which a session is now known to have gone back, and jobs whose first steps these are.
        """
        rewound: set[int] = set()
        found: set[int] = set()
        for job, timeline in timelines.items():
            old = self._memos.get(str(job), JobMemo())
            new = JobMemo(
                first_step_seconds=timeline.first_step_seconds, resumes={**old.resumes, **_resumes(timeline)}
            )
            if new != old:
                self._memos[str(job)] = new
                self._changed.add(str(job))
            if new.resumes != old.resumes:
                rewound.add(job)
            if old.first_step_seconds is None and new.first_step_seconds is not None:
                found.add(job)
        return rewound, found

    def save(self) -> None:
        """Make what was learned durable."""
        if self._changed:
            self._control.save(KIND, {key: self._memos[key] for key in self._changed})
            self._changed = set()


def _resumes(timeline: JobTimeline) -> dict[str, int]:
    """Resume steps that are certain: a row of an earlier session stands before the session's first."""
    sessions = timeline.steps["session"]
    first_seen = int(sessions.min()) if sessions.size else 0
    present = {int(number) for number in sessions}
    return {
        str(launch): session.resumed_from_step
        for session in timeline.sessions
        if session.number in present and session.number > first_seen and session.resumed_from_step is not None
        for launch in session.launches
    }
