"""What of ledger rows a team held, and what nobody held."""

import numpy as np

from flopwatch_collector.compute.buckets import CODE, REASON_CODE
from flopwatch_collector.model import Columns, FleetState, JobRecord
from flopwatch_collector.views.team_ledger import parts_of

HOUR = 3_600_000


def rows(*given: tuple[int, str, str, int]) -> Columns:
    """(job, bucket, reason, GPU-hours)."""
    return {
        "ts": np.arange(len(given), dtype=np.float64),
        "node": np.ones(len(given), dtype=np.int64),
        "job": np.array([each[0] for each in given]),
        "bucket": np.array([CODE[each[1]] for each in given]),
        "reason": np.array([REASON_CODE[each[2]] for each in given]),
        "gpu_milliseconds": np.array([each[3] * HOUR for each in given]),
        "useful_gpu_milliseconds": np.zeros(len(given), dtype=np.int64),
    }


def fleet() -> FleetState:
    """Jobs 1 and 2 are of nlp, 3 of vision, 4 of nobody known."""
    jobs = {
        number: JobRecord(
            number=number, job_id=f"a-{number}", key=str(number), cluster="a", name="job", scheduler="slurm",
            user=None, account=account,
        )
        for number, account in ((1, "nlp"), (2, "nlp"), (3, "vision"), (4, None))
    }  # fmt: skip
    return FleetState(generation=1, nodes={}, gpus={}, jobs=jobs, launches={}, leases={}, latest={})


DAY = rows(
    (1, "STEP", "", 100),
    (2, "HELD_IDLE", "", 20),
    (2, "UNKNOWN", "leased", 2),
    (2, "BUSY_OPAQUE", "unleased", 3),
    (3, "STEP", "", 40),
    (4, "STEP", "", 7),
    (0, "FREE", "no_demand", 50),
    (0, "UNKNOWN", "", 8),
    (1, "GAP", "", 0),
)


def test_a_team_has_what_its_leases_held_and_nothing_that_nobody_held() -> None:
    own, nobody = parts_of(DAY, fleet(), "nlp")

    assert own["ts"].tolist() == [0.0, 1.0, 2.0]
    assert int(own["gpu_milliseconds"].sum()) == 122 * HOUR
    # 3 that worked without a lease, 50 free, 8 unknown.
    assert nobody == 61 * HOUR


def test_teams_the_jobs_of_none_and_what_nobody_held_are_the_whole() -> None:
    held = [int(parts_of(DAY, fleet(), team)[0]["gpu_milliseconds"].sum()) for team in ("nlp", "vision")]

    assert held == [122 * HOUR, 40 * HOUR]
    assert sum(held) + 7 * HOUR + parts_of(DAY, fleet(), "vision")[1] == int(DAY["gpu_milliseconds"].sum())


def test_a_team_that_held_nothing_has_no_rows() -> None:
    own, nobody = parts_of(DAY, fleet(), "audio")

    assert (own["ts"].size, nobody) == (0, 61 * HOUR)
