"""The fleet that several collectors share: one number for one thing, whoever saw it first, at the same time even."""

import threading

import pytest
from tests.integration.collector.batches import NOW, batch, device

from flopwatch.wire import GpuSample, JobSighting
from flopwatch_collector.bookkeeping.late import SharedLateHours
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import DeclaredFact
from flopwatch_collector.store.control_postgres import PostgresControl


class Collector:
    def __init__(self, url: str) -> None:
        self.control = PostgresControl(url)
        self.directory = Directory(self.control, lambda: NOW)

    def take(self, *batches, fails: bool = False) -> None:
        """One turn, as ingest does it."""
        with self.directory.turn():
            for each in batches:
                self.directory.resolve(each, each.sampled_at_seconds, None)
            self.control.save_all(self.directory.take_documents())
            if fails:
                raise ConnectionError

    def nodes(self) -> dict[str, int]:
        return {node.name: number for number, node in self.directory.state().nodes.items()}


@pytest.fixture
def pair(postgres):
    url = postgres.new_database()
    collectors = [Collector(url), Collector(url)]
    yield collectors
    for each in collectors:
        each.control.close()


def of_job(node: str, at: float = NOW):
    uuid = f"GPU-{node}"
    return batch(
        node,
        at,
        gpus=(device(uuid),),
        gpu_samples=(GpuSample(gpu=uuid, time_seconds=at, job="slurm-7", kernel_active_ratio=0.5),),
        jobs=(
            JobSighting(
                ref="slurm-7",
                scheduler="slurm",
                scheduler_job_id="7",
                submit_time_seconds=NOW - 60,
                gpus=(uuid,),
            ),
        ),
    )


def test_a_job_whose_nodes_push_to_different_collectors_is_one_job(pair) -> None:
    first, second = pair
    first.take(of_job("n1"))
    second.take(of_job("n2"))
    first.take(of_job("n3"), of_job("n1", NOW + 10))
    second.directory.learn()
    for each in pair:
        state = each.directory.state()
        assert sorted(each.nodes().values()) == [1, 2, 3]
        assert list(state.jobs) == [1]
        assert [part.node for part in state.jobs[1].parts] == [1, 2, 3]
        assert {gpu.uuid: gpu.node for gpu in state.gpus.values()} == {"GPU-n1": 1, "GPU-n2": 2, "GPU-n3": 3}


def test_signs_of_life_that_only_one_has_seen_outlive_what_the_other_saves(pair) -> None:
    first, second = pair
    first.take(of_job("n1"), of_job("n2"))
    second.take(of_job("n2", NOW + 5))
    second.take(of_job("n2", NOW + 40))  # too soon to be saved again
    first.take(of_job("n3", NOW + 50))  # saves the job as first knows it
    second.directory.learn()
    parts = second.directory.state().jobs[1].parts
    assert [part.last_seen_seconds for part in parts] == [NOW, NOW + 40, NOW + 50]


def test_collectors_that_find_nodes_at_the_same_time_agree_on_their_numbers(pair) -> None:
    def find(collector: Collector, own: str) -> None:
        for at in range(20):
            collector.take(batch(f"{own}{at}"), batch(f"both{at}"))

    threads = [threading.Thread(target=find, args=(each, own)) for each, own in zip(pair, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in pair:
        each.directory.learn()
    assert pair[0].nodes() == pair[1].nodes()
    assert sorted(pair[0].nodes().values()) == list(range(1, 61))


def test_numbers_of_a_turn_that_failed_are_forgotten(pair) -> None:
    first, second = pair
    with pytest.raises(ConnectionError):
        first.take(batch("lost"), fails=True)
    second.take(batch("n2"))
    first.take(batch("n3"))
    second.directory.learn()
    assert first.nodes() == second.nodes() == {"n2": 1, "n3": 2}


def test_hours_that_one_marks_as_wrong_another_computes(pair) -> None:
    first, second = (SharedLateHours(each.control) for each in pair)
    first.mark([7, 8])
    taken = second.marks()
    assert list(taken) == [8, 7]
    first.mark([7])  # while it is being computed
    second.done(taken)
    assert list(first.marks()) == list(second.marks()) == [7]
    second.done(second.marks())
    assert first.marks() == {}
    assert first.any() is False


def test_what_is_declared_at_one_collector_counts_at_the_other(pair) -> None:
    first, second = pair
    first.take(of_job("n1"))
    second.directory.learn()
    first.directory.declare(1, {"name": DeclaredFact(value="llama", seconds=NOW)})
    second.directory.learn()
    assert second.directory.state().jobs[1].name == "llama"
    second.directory.withdraw(1, "name")
    first.directory.learn()
    assert first.directory.state().jobs[1].name != "llama"
