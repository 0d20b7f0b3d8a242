"""``flopwatch replay``: the worked day to its printed digits, and what the command does with its input."""

import gzip
import io
import sys
from datetime import datetime, timezone

import pytest
from tests.integration.accounting.recorded import BASE, NodeTape, batches, written
from tests.integration.accounting.recorded_day import DAY, EXPECTED, worked_day
from tests.integration.accounting.replaying import replay, run

from flopwatch.encoding import encode
from flopwatch_collector import replay_command

HOURS = {
    "MAINT": 16.0, "FAULT": 16.0, "UNKNOWN": 4.0, "SPARE": 9.5, "FREE": 203.567, "HELD_EMPTY": 8.0, "HELD_IDLE": 7.0,
    "BUSY_OPAQUE": 73.0, "STARTUP": 1.333, "RECOVERY": 1.333, "CKPT": 0.4, "EVAL": 0.667, "DATA_WAIT": 0.0,
    "HANG": 1.422, "GAP": 0.0, "LOST": 4.444, "STEP": 37.333,
}  # fmt: skip
SHARES = {
    "MAINT": 4.167, "FAULT": 4.167, "UNKNOWN": 1.042, "SPARE": 2.474, "FREE": 53.012, "HELD_EMPTY": 2.083,
    "HELD_IDLE": 1.823, "BUSY_OPAQUE": 19.010, "STARTUP": 0.347, "RECOVERY": 0.347, "CKPT": 0.104, "EVAL": 0.174,
    "DATA_WAIT": 0.0, "HANG": 0.370, "GAP": 0.0, "LOST": 1.157, "STEP": 9.722,
}  # fmt: skip

COSTS = """
[costs.own]
gpus = 128
capex_per_gpu = 40000
life_years = 4
residual_ratio = 0.10
colo_kw_per_gpu = 1.3
colo_per_kw_month = 150
staff_fte = 2
staff_cost_per_fte = 200000
maintenance_ratio = 0.04
electricity_per_kwh = 0.10
pue = 1.3
idle_kw_per_gpu = 0.30
busy_kw_per_gpu = 1.10
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    made, folder = worked_day(), tmp_path_factory.mktemp("day")
    (folder / "site.toml").write_text(COSTS)
    options = ("--config", str(folder / "site.toml"))
    return replay(folder, [*made, *made[:50]], *options, packed=True, shuffled=7)


def test_the_worked_day_has_every_bucket_to_the_second(answer):
    assert answer["ledger"]["gpu_seconds"] == EXPECTED
    assert answer["ledger"]["capacity_gpu_seconds"] == 1_382_400


def test_the_worked_day_has_its_hours_and_shares(answer):
    hours, shares = answer["ledger"]["gpu_hours"], answer["ledger"]["ratio"]

    assert {name: round(value, 3) for name, value in hours.items()} == HOURS
    assert {name: round(100 * value, 3) for name, value in shares.items()} == SHARES


def test_the_worked_day_has_its_dollars(answer):
    money = answer["ledger"]["money"]

    assert {name: round(money[name], 2) for name in ("FREE", "HELD_IDLE", "HELD_EMPTY", "LOST")} == {
        "FREE": 381.26, "HELD_IDLE": 13.11, "HELD_EMPTY": 14.98, "LOST": 8.79,
    }  # fmt: skip
    assert answer["ledger"]["currency"] == "USD"


def test_the_worked_day_has_its_ratios(answer):
    told = {name: round(value, 6) for name, value in answer["metrics"].items() if value is not None}

    assert told == {
        "availability": 0.916667, "U_alloc": 0.351389, "U_bill": 0.312326, "U_bill_upper": 0.322743, "SG": 0.351389,
        "RG_lower": 0.276680, "RG_upper": 0.817688, "PG": 0.4, "PG_coverage": 1.0, "MPG_lower_bound": 0.038889,
        "unknown_ratio": 0.010417, "busy_opaque_ratio": 0.190104, "fleet_training_mfu": 0.318182,
    }  # fmt: skip


def test_the_worked_days_job_has_its_goodput(answer):
    job = next(job for job in answer["jobs"] if job["name"] == "J1")
    (outage,) = job["goodput"]["interruptions"]

    assert round(job["ETTR"], 6) == 0.795455
    assert round(job["mfu_over_lease"], 6) == 0.318182
    assert round(job["mfu"], 6) == 0.4
    assert job["leased_gpu_seconds"] == 8 * 21_120
    assert (outage["detect_seconds"], outage["isolate_seconds"], outage["resume_seconds"]) == (640, 0, 600)
    assert (outage["lost_steps"], job["goodput"]["lost_per_interruption_gpu_seconds"]) == (200, 16_000)
    assert job["goodput"]["checkpointing"]["save_seconds"] == 60


def test_the_buckets_of_nodes_jobs_and_users_add_up_to_the_clusters(answer):
    ledger = answer["ledger"]
    for view in ("by_node", "by_job", "by_user", "by_account", "by_cluster", "by_day"):
        totals = dict.fromkeys(EXPECTED, 0.0)
        for part in ledger[view].values():
            assert sum(part["gpu_seconds"].values()) == part["capacity_gpu_seconds"]
            for name, amount in part["gpu_seconds"].items():
                totals[name] += amount
        assert totals == EXPECTED, view
    assert ledger["by_user"]["bob"]["gpu_seconds"] == {
        "HELD_EMPTY": 28_800, "HELD_IDLE": 25_200, "BUSY_OPAQUE": 3600
    }  # fmt: skip


def test_step_is_split_into_equivalents_that_add_up_to_it(answer):
    assert answer["ledger"]["step_split_gpu_seconds"] == {
        "USEFUL": 53_760, "STRAGGLER": 0, "THROTTLE": 0, "EXPOSED_COMM": 0, "INTRINSIC": 80_640, "INTRINSIC_UNKNOWN": 0
    }  # fmt: skip


def test_batches_that_came_twice_are_counted_and_change_nothing(answer):
    assert (answer["input"]["batches"], answer["input"]["duplicates"]) == (287, 50)


def test_local_days_split_the_ledger(tmp_path):
    settings = tmp_path / "site.toml"
    settings.write_text('[collector]\ntime_zone = "Asia/Kolkata"\n[costs]\nprice_per_gpu_hour = 2.0\n')
    tape = NodeTape("a", gpus=2)
    tape.sample(None, 0, DAY, kernel_active_ratio=0.0, process_count=0)

    ledger = replay(tmp_path, batches(tape, DAY), "--config", str(settings))["ledger"]

    assert {day: each["capacity_gpu_seconds"] for day, each in ledger["by_day"].items()} == {
        "2026-03-03": 2 * 18.5 * 3600, "2026-03-04": 2 * 5.5 * 3600
    }  # fmt: skip
    assert ledger["money"]["FREE"] == pytest.approx(48 * 2.0)


def test_only_the_asked_time_is_printed_and_later_batches_are_not_known(tmp_path):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 7200, kernel_active_ratio=0.0, process_count=0)
    until = datetime.fromtimestamp(BASE + 3600, timezone.utc).isoformat()

    answer = replay(tmp_path, batches(tape, 7200), "--from", str(BASE + 600), "--until", until)

    assert answer["ledger"]["capacity_gpu_seconds"] == 3000
    assert answer["input"]["batches"] == 7


def test_bad_lines_are_set_aside_and_named(tmp_path):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 3600, kernel_active_ratio=0.0, process_count=0)
    lines = [encode(batch) for batch in batches(tape, 3600)]
    lines[2:2] = [b"{bad", b"[]", b'{"version":2}', b"", b"null"]
    file = tmp_path / "torn.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n".join(lines) + b"\n")[:-8])

    answer = run(str(file))

    assert answer["ledger"]["gpu_seconds"]["FREE"] == 3600
    assert [each["line"] for each in answer["input"]["problems"]] == [3, 4, 5, 7, 13]
    assert answer["input"]["set_aside"] == 5


def test_standard_input_and_a_spools_folder_are_inputs_too(tmp_path, monkeypatch):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 3600, kernel_active_ratio=0.0, process_count=0)
    made = batches(tape, 3600)
    spool = tmp_path / "spool"
    spool.mkdir()
    for batch in made:
        written(spool / f"{batch.sequence:020d}.json.gz", [batch], packed=True)
    packed = written(tmp_path / "all.gz", made, packed=True).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))

    for source in (str(spool), "-"):
        assert run(source)["ledger"]["gpu_seconds"]["FREE"] == 3600, source


def test_wrong_use_is_told_with_what_is_allowed(tmp_path, capsys):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    file = written(tmp_path / "b.jsonl", batches(NodeTape("a"), 60))

    assert replay_command.main([str(tmp_path / "none")]) == 2
    assert replay_command.main([str(file), "--keep", str(full)]) == 2
    assert replay_command.main([str(file), "--until", "tomorrow"]) == 2
    told = capsys.readouterr().err
    assert "No such file" in told
    assert "allowed: an empty folder" in told
    assert "--until is 'tomorrow'; allowed: epoch seconds" in told


def test_an_input_without_batches_is_an_error_of_its_own(tmp_path, capsys):
    file = tmp_path / "empty.jsonl"
    file.write_text("nothing\n")

    assert replay_command.main([str(file)]) == 1
    assert "no batch in the input" in capsys.readouterr().err


def test_people_get_a_page_of_text(tmp_path, capsys):
    tape = NodeTape("a", gpus=1)
    tape.sample(None, 0, 3600, kernel_active_ratio=0.0, process_count=0)
    file = written(tmp_path / "b.jsonl", batches(tape, 3600, simulated=True))

    assert replay_command.main([str(file), "--keep", str(tmp_path / "kept")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("SIMULATED data.")
    assert "3,600.000" in printed
    assert (tmp_path / "kept" / "store").is_dir()
