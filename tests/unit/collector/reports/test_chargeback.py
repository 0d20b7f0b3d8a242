"""Chargeback: leases are billed, platform losses credited, nothing is lost between lines."""

import numpy as np
import pytest

from flopwatch_collector.compute.buckets import CODE, REASON_CODE
from flopwatch_collector.compute.chargeback import charged, parts_of_team
from flopwatch_collector.compute.money import Rates
from flopwatch_collector.model import Columns, FleetState, JobRecord, Node

HOUR = 3_600_000


def rows(*given: tuple[int, int, str, str, int]) -> Columns:
    """(node, job, bucket, reason, GPU-hours)."""
    return {
        "ts": np.zeros(len(given)),
        "node": np.array([each[0] for each in given]),
        "job": np.array([each[1] for each in given]),
        "bucket": np.array([CODE[each[2]] for each in given]),
        "reason": np.array([REASON_CODE[each[3]] for each in given]),
        "gpu_milliseconds": np.array([each[4] * HOUR for each in given]),
        "useful_gpu_milliseconds": np.zeros(len(given), dtype=np.int64),
    }


def fleet() -> FleetState:
    nodes = {
        number: Node(
            number=number, cluster="a", name=f"n{number}", first_seen_seconds=0.0, last_seen_seconds=0.0
        )
        for number in (1, 2)
    }
    jobs = {
        number: JobRecord(
            number=number, job_id=f"a-{number}", key=str(number), cluster="a", name=name, scheduler="slurm",
            user=user, account=account,
        )
        for number, name, user, account in (
            (1, "big", "ann", "nlp"), (2, "small", "bob", "nlp"), (3, "odd", None, None),
        )
    }  # fmt: skip
    return FleetState(generation=1, nodes=nodes, gpus={}, jobs=jobs, launches={}, leases={}, latest={})


DAY = rows(
    (1, 1, "STEP", "", 100),
    (1, 1, "RECOVERY", "platform", 10),
    (1, 1, "LOST", "user", 5),
    (2, 2, "HELD_IDLE", "", 20),
    (2, 3, "BUSY_OPAQUE", "no_steps", 4),
    (2, 2, "BUSY_OPAQUE", "unleased", 3),
    (2, 0, "FREE", "no_demand", 50),
    (2, 0, "UNKNOWN", "", 8),
    (2, 2, "UNKNOWN", "leased", 2),
)
RATES = Rates(fixed_per_gpu_hour=2.0, variable_per_gpu_hour=0.5)


def test_a_team_pays_its_leases_less_what_the_platform_lost() -> None:
    lines = {
        (line.key, line.leased_somewhere): line
        for line in charged(DAY, "team", fleet(), RATES, lambda _: None)
    }
    nlp = lines["nlp", True]

    # 115 busy GPU-hours at 2.50; 20 idle and 2 unknown ones at 2.00.
    assert nlp.billed == pytest.approx(115 * 2.5 + 22 * 2.0)
    assert nlp.credit == pytest.approx(-10 * 2.5)
    assert nlp.net == pytest.approx(105 * 2.5 + 22 * 2.0)
    assert (nlp.leased_gpu_milliseconds, nlp.credit_gpu_milliseconds) == (137 * HOUR, 10 * HOUR)
    assert nlp.waste_gpu_milliseconds == 35 * HOUR
    assert lines[None, True].billed == pytest.approx(4 * 2.5)
    nobody = lines[None, False]
    assert (nobody.gpu_milliseconds, nobody.billed, nobody.net) == (61 * HOUR, 0.0, 0.0)
    assert nobody.cost == pytest.approx(3 * 2.5 + 58 * 2.0)


@pytest.mark.parametrize("by", ["team", "user", "job", "node", "cluster", "group"])
def test_the_lines_are_the_ledger_to_the_millisecond(by: str) -> None:
    lines = charged(DAY, by, fleet(), RATES, lambda name: "old" if name == "n1" else None)  # type: ignore[arg-type]

    assert sum(line.gpu_milliseconds for line in lines) == 202 * HOUR
    assert sum(sum(line.by_class.values()) for line in lines) == 202 * HOUR
    assert sum(line.cost or 0.0 for line in lines) == pytest.approx(122 * 2.5 + 80 * 2.0)


def test_without_a_price_money_is_unknown_and_time_is_not() -> None:
    (first, *_) = charged(DAY, "user", fleet(), Rates(), lambda _: None)

    assert (first.key, first.billed, first.credit, first.net, first.cost) == ("ann", None, None, None, None)
    assert first.leased_gpu_milliseconds == 115 * HOUR


def test_a_price_that_one_node_lacks_leaves_only_its_own_lines_unknown() -> None:
    lines = charged(DAY, "node", fleet(), Rates(by_node={1: (2.0, 0.5)}), lambda _: None)

    assert {line.key: line.cost for line in lines} == {"n1": pytest.approx(115 * 2.5), "n2": None}


def test_a_team_has_what_its_leases_held_and_nothing_that_nobody_held() -> None:
    own, nobody = parts_of_team(DAY, fleet(), "nlp")

    # 100 + 10 + 5 + 20 + 2; the 3 that worked without a lease, 50 free and 8 unknown are nobody's.
    assert (int(own["gpu_milliseconds"].sum()), nobody) == (137 * HOUR, 61 * HOUR)
    assert own["bucket"].tolist() == [
        CODE[name] for name in ("STEP", "RECOVERY", "LOST", "HELD_IDLE", "UNKNOWN")
    ]


def test_the_ledger_of_a_team_alone_is_its_line_among_all_to_the_last_digit() -> None:
    among = {line.key: line for line in charged(DAY, "team", fleet(), RATES, lambda _: None)}
    (alone,) = charged(parts_of_team(DAY, fleet(), "nlp")[0], "team", fleet(), RATES, lambda _: None)

    assert alone == among["nlp"]


def test_a_team_that_held_nothing_has_no_rows() -> None:
    own, nobody = parts_of_team(DAY, fleet(), "audio")

    assert (own["ts"].size, nobody) == (0, 61 * HOUR)
