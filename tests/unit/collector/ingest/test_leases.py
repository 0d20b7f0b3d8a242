from tests.integration.collector.batches import NOW, MemoryControl, batch, device, slurm, step

from flopwatch import wire
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import LeaseRecord
from flopwatch_collector.views.gpu_now import jobs_held

TWO = (device("A"), device("B", "0000:3d:00.0"))


def leases(*batches: wire.Batch) -> list[LeaseRecord]:
    fleet = Directory(MemoryControl(), lambda: NOW)
    for each in batches:
        fleet.resolve(each, each.sampled_at_seconds)
    return list(fleet.state().leases.values())


def test_a_schedulers_lease_is_taken_by_its_own_clock_cut_to_the_second() -> None:
    told = wire.Lease(
        lease_id="77",
        job="slurm:77",
        gpus=("A", "B"),
        source="slurm",
        start_seconds=NOW - 99.7,
        end_seconds=NOW - 1.2,
    )

    (lease,) = leases(batch(gpus=TWO, jobs=(slurm(),), leases=(told,)))

    assert (lease.start_seconds, lease.end_seconds, lease.source) == (NOW - 100, NOW - 2, "slurm")
    assert lease.gpus == (1, 2)


def test_one_lease_over_two_nodes_holds_the_gpus_of_both() -> None:
    def told(gpu: str) -> wire.Lease:
        return wire.Lease(lease_id="77", job="slurm:77", gpus=(gpu,), source="slurm", start_seconds=NOW)

    found = leases(
        batch("n1", gpus=(device("A"),), jobs=(slurm(),), leases=(told("A"),)),
        batch("n2", gpus=(device("B"),), jobs=(slurm(),), leases=(told("B"),)),
    )

    assert [(lease.job, lease.gpus) for lease in found] == [(1, (1,)), (1, (2,))]


def test_gpus_the_scheduler_gave_are_leased_also_those_not_in_use() -> None:
    (lease,) = leases(
        batch(gpus=TWO, jobs=(slurm(gpus=("A",), leased_gpus=("A", "B"), start_time_seconds=NOW - 5.5),))
    )

    assert (lease.source, lease.gpus, lease.start_seconds) == ("slurm", (1, 2), NOW - 6)


def test_an_instrumented_job_without_scheduler_holds_its_gpus_at_once() -> None:
    job = wire.JobSighting(ref="pid:1", gpus=("A",), start_time_seconds=NOW - 3)

    (lease,) = leases(batch(gpus=TWO, jobs=(job,), steps=(step(1, "pid:1", source="sdk"),)))

    assert (lease.source, lease.gpus, lease.start_seconds) == ("registration", (1,), NOW - 3)


def test_so_does_a_schedulers_job_whose_scheduler_tells_no_lease() -> None:
    """Slurm without device cgroups, and without a link of the collector's to it."""
    job = slurm(gpus=("A",), start_time_seconds=NOW - 3)

    (lease,) = leases(batch(gpus=TWO, jobs=(job,), steps=(step(1, job.ref, source="log"),)))

    assert (lease.source, lease.gpus, lease.start_seconds) == ("registration", (1,), NOW - 3)


def test_a_compute_process_is_a_lease_from_its_start_once_it_is_300_seconds_old() -> None:
    job = wire.JobSighting(ref="pid:1", gpus=("A",), start_time_seconds=NOW)

    young = leases(batch(at=NOW + 300, gpus=TWO, jobs=(job,)))
    (old,) = leases(batch(at=NOW + 301, gpus=TWO, jobs=(job,)))

    assert young == []
    assert (old.source, old.start_seconds, old.end_seconds) == ("process", NOW, None)


def test_a_lease_from_use_ends_with_its_processes() -> None:
    job = wire.JobSighting(ref="pid:1", gpus=("A",), start_time_seconds=NOW - 1000)
    ended = wire.JobSighting(ref="pid:1", gpus=(), start_time_seconds=NOW - 1000, end_time_seconds=NOW + 20.9)

    (lease,) = leases(batch(gpus=TWO, jobs=(job,)), batch(at=NOW + 30, jobs=(ended,)))

    assert (lease.gpus, lease.end_seconds) == ((1,), NOW + 20)


def test_a_lease_from_use_ends_when_the_node_names_the_job_no_more() -> None:
    job = wire.JobSighting(ref="pid:1", gpus=("A",), start_time_seconds=NOW - 1000)

    (lease,) = leases(batch(gpus=TWO, jobs=(job,)), batch(at=NOW + 400))

    assert lease.end_seconds == NOW


def test_a_schedulers_own_lease_takes_the_place_of_a_derived_one() -> None:
    job = slurm(gpus=("A",), leased_gpus=("A",), start_time_seconds=NOW - 50)
    told = wire.Lease(lease_id="77", job="slurm:77", gpus=("A",), source="slurm", start_seconds=NOW - 60)

    found = leases(batch(gpus=TWO, jobs=(job,)), batch(at=NOW + 10, jobs=(job,), leases=(told,)))

    assert [lease.lease_id for lease in found if lease.end_seconds is None] == ["77@1:1"]


def test_a_lease_never_ends_before_it_began() -> None:
    told = wire.Lease(
        lease_id="7", job="j", gpus=("A",), source="prolog", start_seconds=NOW, end_seconds=NOW - 60
    )

    (lease,) = leases(batch(gpus=TWO, leases=(told,)))

    assert lease.end_seconds == lease.start_seconds


def test_a_job_that_holds_no_gpu_here_has_no_lease_here() -> None:
    assert leases(batch(gpus=TWO, jobs=(slurm(leased_gpus=()),))) == []


def scheduled(end: float | None) -> wire.Lease:
    return wire.Lease(
        lease_id="77", job="slurm:77", gpus=("A",), source="slurm", start_seconds=NOW - 900, end_seconds=end
    )


def test_a_word_of_before_its_end_that_comes_late_does_not_open_a_lease_again() -> None:
    ended = batch(at=NOW, gpus=TWO, jobs=(slurm(),), leases=(scheduled(NOW - 30.0),))
    older = batch(at=NOW - 300, gpus=TWO, jobs=(slurm(),), leases=(scheduled(None),))
    newer = batch(at=NOW + 60, gpus=TWO, jobs=(slurm(),), leases=(scheduled(None),))

    assert [lease.end_seconds for lease in leases(ended, older)] == [NOW - 30]
    # A newer word counts: the scheduler took the end back.
    assert [lease.end_seconds for lease in leases(ended, newer)] == [None]


def test_a_gpu_is_held_by_no_job_that_has_ended_though_nobody_told_the_end_of_its_lease() -> None:
    fleet = Directory(MemoryControl(), lambda: NOW)
    over = slurm(end_time_seconds=NOW - 10, exit_reason="completed")
    for each in (
        batch(at=NOW - 300, gpus=TWO, jobs=(slurm(),), leases=(scheduled(None),)),
        batch(at=NOW, jobs=(over,)),
    ):
        fleet.resolve(each, each.sampled_at_seconds)

    assert jobs_held(fleet.state(), NOW - 60) == {1: 1}
    assert jobs_held(fleet.state(), NOW) == {}
