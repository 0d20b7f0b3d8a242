"""Sightings that say nothing new are signs of life and nothing else."""

from dataclasses import replace

from tests.integration.collector.batches import NOW, MemoryControl, batch, sample, slurm

from flopwatch import wire
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import JobRecord

JOB = slurm(user="ann", start_time_seconds=NOW - 60.0)


def take(fleet: Directory, node: str, at: float, *jobs: wire.JobSighting) -> None:
    fleet.resolve(batch(node, at, jobs=jobs), at)


def the_job(fleet: Directory) -> JobRecord:
    (job,) = fleet.state().jobs.values()
    return job


def test_each_part_was_last_seen_when_its_node_last_named_it() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    for at in (0.0, 10.0, 20.0):
        take(fleet, "n1", NOW + at, JOB)
    for at in (3.0, 13.0):
        take(fleet, "n2", NOW + at, JOB)

    job = the_job(fleet)

    assert [part.last_seen_seconds - NOW for part in job.parts] == [20.0, 13.0]
    assert job.last_seen_seconds == NOW + 20.0


def test_a_late_batch_takes_no_sign_of_life_back() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    for at in (0.0, 30.0, 10.0):
        take(fleet, "n1", NOW + at, JOB)

    assert the_job(fleet).last_seen_seconds == NOW + 30.0


def test_what_a_sighting_says_anew_is_taken_in_at_once() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    take(fleet, "n1", NOW, JOB)
    take(fleet, "n1", NOW + 10.0, JOB)
    take(fleet, "n1", NOW + 20.0, replace(JOB, name="llama", waiting_for="steps"))

    job = the_job(fleet)

    assert (job.name, job.parts[0].waiting_for) == ("llama", "steps")


def test_an_end_ends_the_job_after_any_number_of_repeats() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    for at in (0.0, 10.0, 20.0):
        take(fleet, "n1", NOW + at, JOB)
    over = replace(JOB, end_time_seconds=NOW + 25.0, exit_reason="completed")
    for at in (30.0, 40.0):
        take(fleet, "n1", NOW + at, over)

    job = the_job(fleet)

    assert (job.end_seconds, job.exit_reason, job.last_seen_seconds) == (NOW + 25.0, "completed", NOW + 25.0)


def test_a_part_that_was_taken_for_gone_comes_back_with_the_same_sighting() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    take(fleet, "n1", NOW, JOB)
    take(fleet, "n1", NOW + 10.0, JOB)
    take(fleet, "n1", NOW + 400.0)
    gone = the_job(fleet)

    take(fleet, "n1", NOW + 410.0, JOB)
    back = the_job(fleet)

    assert (gone.end_seconds, gone.exit_reason) == (NOW + 10.0, "gone")
    assert (back.end_seconds, back.exit_reason, back.last_seen_seconds) == (None, None, NOW + 410.0)


def test_gpus_that_become_known_later_are_taken_in_with_an_unchanged_sighting() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    with_gpu = replace(JOB, gpus=("A",))
    take(fleet, "n1", NOW, with_gpu)
    unknown = the_job(fleet).parts[0].gpus

    fleet.resolve(
        batch("n1", NOW + 10.0, jobs=(with_gpu,), gpu_samples=(sample("A", NOW + 10.0),)), NOW + 10.0
    )

    assert (unknown, the_job(fleet).parts[0].gpus) == ((), (1,))


def test_the_last_sign_of_life_is_saved_within_a_minute_and_known_after_a_restart() -> None:
    control = MemoryControl()
    fleet = Directory(control, lambda: NOW)
    for at in range(0, 130, 10):
        take(fleet, "n1", NOW + at, JOB)
        fleet.state()
        control.save_all(fleet.take_documents())

    kept = the_job(Directory(control, lambda: NOW))

    assert kept.last_seen_seconds >= NOW + 60.0
