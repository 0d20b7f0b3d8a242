from tests.integration.collector.batches import NOW, MemoryControl, batch, device, sample, slurm, step

from flopwatch import wire
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import JobRecord


def directory(control: MemoryControl | None = None) -> Directory:
    return Directory(control or MemoryControl(), lambda: NOW)


def take(fleet: Directory, *batches: wire.Batch) -> None:
    for each in batches:
        fleet.resolve(each, each.sampled_at_seconds)


def jobs(fleet: Directory) -> list[JobRecord]:
    return sorted(fleet.state().jobs.values(), key=lambda job: job.number)


def launched(ref: str, start: float, **fields: object) -> wire.JobSighting:
    known = {"uid": 1000, "master": "10.0.0.1:29500", "world_size": 16, "start_time_seconds": start}
    return wire.JobSighting(ref=ref, **{**known, **fields})  # type: ignore[arg-type]


def test_a_header_on_one_node_and_steps_on_another_are_one_job() -> None:
    fleet = directory()
    header = wire.RunFacts(
        source="log", origin="Megatron argument block", shape={"layers": 32}, world_size=16
    )

    take(fleet, batch("first", jobs=(slurm(submit_time_seconds=5.0, run=(header,)),)))
    rows = fleet.resolve(
        batch(
            "last", jobs=(slurm(submit_time_seconds=5.0),), steps=(step(1, "slurm:77"), step(2, "slurm:77"))
        ),
        NOW,
    ).rows.step

    (job,) = jobs(fleet)
    assert job.runs == (header,)
    assert {fleet.state().nodes[part.node].name for part in job.parts} == {"first", "last"}
    assert rows["job"].tolist() == [job.number, job.number]


def test_sixteen_nodes_following_one_file_give_the_rows_of_one() -> None:
    fleet = directory()
    records = tuple(step(n, "slurm:77", NOW + n) for n in range(1, 11))

    stored = [
        fleet.resolve(batch(f"n{i}", NOW + 20, jobs=(slurm(),), steps=records), NOW + 20).rows.step
        for i in range(16)
    ]

    assert [len(rows["step"]) if rows else 0 for rows in stored] == [10] + [0] * 15
    assert len(fleet.state().launches) == 1


def test_steps_of_a_batch_that_was_not_stored_may_come_again() -> None:
    fleet = directory()
    first = batch("n1", jobs=(slurm(),), steps=(step(1, "slurm:77"),))
    second = batch("n2", jobs=(slurm(),), steps=(step(1, "slurm:77"),))

    fleet.give_back(fleet.resolve(first, NOW))

    assert fleet.resolve(second, NOW).rows.step["step"].tolist() == [1]


def test_a_reused_slurm_id_with_another_submit_time_is_another_job() -> None:
    fleet = directory()

    take(
        fleet,
        batch(jobs=(slurm(submit_time_seconds=100.0),)),
        batch(at=NOW + 60, jobs=(slurm(submit_time_seconds=5000.0),)),
    )

    assert len(jobs(fleet)) == 2
    assert jobs(fleet)[0].job_id != jobs(fleet)[1].job_id


def test_a_node_that_cannot_know_the_submit_time_joins_the_others() -> None:
    fleet = directory()

    take(fleet, batch("n1", jobs=(slurm(submit_time_seconds=100.0),)), batch("n2", jobs=(slurm(),)))

    assert len(jobs(fleet)) == 1


def test_the_same_scheduler_id_in_two_clusters_is_two_jobs() -> None:
    fleet = directory()

    take(fleet, batch("n1", jobs=(slurm(),)), batch("n1", cluster="c2", jobs=(slurm(),)))

    assert [job.cluster for job in jobs(fleet)] == ["c1", "c2"]


def test_launches_without_scheduler_join_by_user_master_and_world_size() -> None:
    fleet = directory()

    take(
        fleet,
        batch("n1", NOW + 30, jobs=(launched("pid:1", NOW),)),
        batch("n2", NOW + 30, jobs=(launched("pid:9", NOW + 20.0),)),
    )

    (job,) = jobs(fleet)
    assert len(job.parts) == 2
    assert job.start_seconds == NOW


def test_a_relaunch_with_the_same_master_is_another_job_on_all_nodes() -> None:
    fleet = directory()
    take(
        fleet,
        batch("n1", NOW + 100, jobs=(launched("pid:1", NOW),)),
        batch("n2", NOW + 100, jobs=(launched("pid:2", NOW + 5),)),
    )

    take(
        fleet,
        batch("n2", NOW + 130, jobs=(launched("pid:4", NOW + 112),)),
        batch("n1", NOW + 130, jobs=(launched("pid:3", NOW + 110),)),
    )

    first, second = jobs(fleet)
    assert {part.ref for part in first.parts} == {"pid:1", "pid:2"}
    assert {part.ref for part in second.parts} == {"pid:3", "pid:4"}


def test_parts_that_nothing_joins_stay_apart_with_a_finding() -> None:
    fleet = directory()
    lone = wire.JobSighting(ref="pid:1", world_size=16, ranks=tuple(range(8)), start_time_seconds=NOW)

    take(fleet, batch("n1", jobs=(lone,)), batch("n2", jobs=(lone,)))

    assert len(jobs(fleet)) == 2
    assert {job.findings[0][0] for job in jobs(fleet)} == {"parts_not_joined"}
    assert jobs(fleet)[0].findings[0][2] == {"world_size": 16, "observed": 8}


def test_a_sighting_that_learns_its_scheduler_job_keeps_its_number() -> None:
    fleet = directory()

    take(fleet, batch(jobs=(wire.JobSighting(ref="r"),)), batch(at=NOW + 10, jobs=(slurm(ref="r"),)))

    (job,) = jobs(fleet)
    assert (job.number, job.scheduler, job.scheduler_job_id) == (1, "slurm", "77")


def test_a_job_without_scheduler_whose_process_starts_anew_is_another_job() -> None:
    fleet = directory()

    take(
        fleet,
        batch(at=NOW + 50, jobs=(wire.JobSighting(ref="r", start_time_seconds=NOW),)),
        batch(at=NOW + 500, jobs=(wire.JobSighting(ref="r", start_time_seconds=NOW + 400),)),
    )

    assert [job.start_seconds for job in jobs(fleet)] == [NOW, NOW + 400]


def test_a_job_ends_when_all_its_parts_have_ended() -> None:
    fleet = directory()
    done = slurm(end_time_seconds=NOW + 40, exit_reason="completed")

    take(
        fleet, batch("n1", jobs=(slurm(),)), batch("n2", jobs=(slurm(),)), batch("n1", NOW + 60, jobs=(done,))
    )
    half = jobs(fleet)[0].end_seconds
    take(fleet, batch("n2", NOW + 60, jobs=(done,)))

    assert half is None
    assert (jobs(fleet)[0].end_seconds, jobs(fleet)[0].exit_reason) == (NOW + 40, "completed")


def test_a_job_its_node_names_no_more_has_ended_when_it_was_last_seen() -> None:
    fleet = directory()

    take(fleet, batch(jobs=(slurm(),)), *(batch(at=NOW + 60 * n) for n in range(1, 8)))

    assert (jobs(fleet)[0].end_seconds, jobs(fleet)[0].exit_reason) == (NOW, "gone")


def test_a_silent_node_ends_no_job() -> None:
    fleet = directory()

    take(fleet, batch("n1", jobs=(slurm(),)), batch("n2", NOW + 3600))

    assert jobs(fleet)[0].end_seconds is None


def test_samples_that_name_a_job_keep_it_alive() -> None:
    fleet = directory()
    take(fleet, batch(gpus=(device("A"),), jobs=(slurm(),)))

    take(
        fleet,
        *(
            batch(at=NOW + 60 * n, gpu_samples=(sample("A", NOW + 60 * n, job="slurm:77"),))
            for n in range(1, 10)
        ),
    )

    assert jobs(fleet)[0].end_seconds is None
    assert jobs(fleet)[0].last_seen_seconds == NOW + 540


def test_facts_from_several_nodes_are_joined_not_overwritten() -> None:
    fleet = directory()
    head = wire.RunFacts(source="log", origin="args", shape={"layers": 32}, dtype="bf16")
    tail = wire.RunFacts(source="log", origin="args", shape={"hidden": 4096}, global_batch_size=512)

    take(fleet, batch("n1", jobs=(slurm(run=(head,)),)), batch("n2", jobs=(slurm(run=(tail,)),)))

    (run,) = jobs(fleet)[0].runs
    assert run.shape == {"layers": 32, "hidden": 4096}
    assert (run.dtype, run.global_batch_size) == ("bf16", 512)


def test_an_old_sighting_that_arrives_late_changes_nothing_but_the_start() -> None:
    fleet = directory()
    take(fleet, batch(at=NOW, jobs=(slurm(end_time_seconds=NOW - 10, start_time_seconds=NOW - 100),)))

    take(fleet, batch(at=NOW - 50, jobs=(slurm(start_time_seconds=NOW - 200, waiting_for="steps"),)))

    assert (jobs(fleet)[0].start_seconds, jobs(fleet)[0].end_seconds) == (NOW - 200, NOW - 10)
    assert jobs(fleet)[0].parts[0].waiting_for is None


def test_jobs_keep_number_id_and_binding_over_a_restart() -> None:
    control = MemoryControl()
    before = directory(control)
    take(before, batch(jobs=(slurm(submit_time_seconds=1.0), wire.JobSighting(ref="pid:5"))))
    control.save_all(before.take_documents())

    after = directory(control)
    rows = after.resolve(batch(at=NOW + 10, steps=(step(1, "pid:5"),)), NOW + 10).rows.step

    assert [(job.number, job.job_id) for job in jobs(after)] == [
        (job.number, job.job_id) for job in jobs(before)
    ]
    assert rows["job"].tolist() == [2]


def test_a_job_seen_again_is_not_saved_each_time() -> None:
    fleet = directory()
    take(fleet, batch(jobs=(slurm(),)))
    fleet.take_documents()

    take(fleet, batch(at=NOW + 10, jobs=(slurm(),)))
    soon = fleet.take_documents()
    take(fleet, batch(at=NOW + 100, jobs=(slurm(),)))
    later = fleet.take_documents()

    assert soon == {}
    assert set(later) == {"job", "node"}


def test_documents_that_could_not_be_saved_are_offered_again() -> None:
    fleet = directory()
    take(fleet, batch(gpus=(device("A"),), jobs=(slurm(),)))

    lost = fleet.take_documents()
    fleet.not_saved()

    assert fleet.take_documents() == lost


def test_a_followed_logs_problem_stands_at_the_nodes_part() -> None:
    fleet = directory()
    log = wire.FollowedLog(job="slurm:77", path="/x/out.log", alive=False, problem="permission denied")

    take(fleet, batch(jobs=(slurm(),), node_facts=wire.NodeFacts(logs=(log,))))

    assert jobs(fleet)[0].parts[0].log_problem == "permission denied"


def test_a_finding_of_a_code_is_kept_once_the_newest() -> None:
    fleet = directory()

    take(
        fleet,
        batch(jobs=(slurm(),), findings=(wire.Finding(job="slurm:77", code="shared_log", text="old"),)),
        batch(at=NOW + 1, findings=(wire.Finding(job="slurm:77", code="shared_log", text="new"),)),
    )

    assert jobs(fleet)[0].findings == (("shared_log", "new", {}),)


def test_a_declared_target_that_is_no_ratio_is_a_finding_and_no_target() -> None:
    fleet = directory()

    take(
        fleet,
        batch(jobs=(slurm(mfu_target_ratio=0.4),)),
        batch(at=NOW + 1, jobs=(slurm(mfu_target_ratio=45.0),)),
    )

    assert jobs(fleet)[0].target_ratio == 0.4
    assert [finding[0] for finding in jobs(fleet)[0].findings] == ["wrong_target"]
