import pytest

from flopwatch_collector.prometheus.dialect import Scope, quoted
from flopwatch_collector.prometheus.identity import PodName, job_of, node_of, owner_names, pod_of, scope_of

EXPORTER = {"pod": "dcgm-exporter-x7x2z", "namespace": "gpu-operator"}


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "n1", "instance": "10.0.0.1:9400"}, "n1"),
        ({"node": "n2", "instance": "10.0.0.1:9400"}, "n2"),
        ({"instance": "n3.example.com:9095"}, "n3.example.com"),
        ({"instance": "n4"}, "n4"),
        ({}, None),
    ],
)
def test_a_node_is_named_by_the_best_label_there_is(labels: dict[str, str], node: str | None) -> None:
    assert node_of(labels) == node


def test_the_exporter_s_own_pod_uses_no_gpu() -> None:
    workload = {**EXPORTER, "exported_pod": "train-0", "exported_namespace": "nlp"}

    assert pod_of(EXPORTER) is None
    assert pod_of(workload) == PodName(namespace="nlp", pod="train-0")
    assert pod_of({"pod_name": "old-0", "pod_namespace": "vision"}) == PodName(
        namespace="vision", pod="old-0"
    )


def test_an_agent_s_job_beats_slurm_s_and_slurm_s_a_pod() -> None:
    everything = {"job_id": "7", "scheduler": "slurm", "hpc_job": "8", "pod": "p", "namespace": "n"}
    names = []
    for dropped in ((), ("job_id",), ("job_id", "hpc_job")):
        found = job_of({key: value for key, value in everything.items() if key not in dropped}, {}, "")
        assert found is not None
        names.append(found.job_id)

    assert names == ["7", "slurm-8", "n.p"]
    assert job_of({"hpc_job": "0"}, {}, "") is None
    assert job_of({}, {}, "") is None


def test_clusters_keep_jobs_of_one_name_apart() -> None:
    found = job_of({"hpc_job": "8"}, {}, "berlin")

    assert found is not None
    assert found.job_id == "berlin:slurm-8"


def test_a_job_s_own_label_beats_the_pod_s_controller() -> None:
    owner = {"namespace": "nlp", "pod": "train-0", "owner_name": "train-0-rs"}
    told = {"namespace": "nlp", "pod": "train-0", "label_jobset_sigs_k8s_io_jobset_name": "llama"}

    assert owner_names([owner]) == {PodName(namespace="nlp", pod="train-0"): "train-0-rs"}
    assert (
        owner_names([told, owner])
        == owner_names([owner, told])
        == {PodName(namespace="nlp", pod="train-0"): "llama"}
    )


def test_a_job_of_many_pods_is_one_matcher() -> None:
    pods = [{"exported_pod": f"train-{rank}", "exported_namespace": "nlp"} for rank in (1, 0)]

    assert scope_of(pods, "a") == Scope(
        cluster="a", dcgm=(r'exported_pod=~"train\\-0|train\\-1",exported_namespace="nlp"',)
    )


def test_label_values_are_escaped() -> None:
    assert quoted('a"b\\c\n') == '"a\\"b\\\\c\\n"'
