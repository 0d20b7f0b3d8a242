"""The Helm chart and the plain manifests made of it, against the API schemas of Kubernetes."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from tests.integration.deploy.chart import CHART, default_values, documents, merged, rendered

DEPLOY = CHART.parents[1]
SCHEMAS = json.loads((Path(__file__).parents[2] / "fixtures" / "kubernetes_schemas.json").read_text())
OPERATOR_KINDS = {"ServiceMonitor", "PodMonitor"}
PLAIN = {
    "flopwatch.yaml": {},
    "flopwatch-without-hostpid.yaml": {"agent": {"hostPID": False, "hostNetwork": False}},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "without hostPID": PLAIN["flopwatch-without-hostpid.yaml"],
    "agents alone": {"collector": {"enabled": False}},
    "collector alone": {"agent": {"enabled": False}},
    "everything": {
        "agent": {
            "tokenSecret": "flopwatch",
            "runtimeClassName": "nvidia",
            "nodeSelector": {"nvidia.com/gpu.present": "true"},
            "resources": {"limits": {"cpu": "1", "memory": "256Mi"}},
        },
        "collector": {"storageClassName": "fast", "tolerations": [{"key": "infra", "operator": "Exists"}]},
        "monitoring": {"enabled": True},
    },
}


def problems(document: Any) -> list[str]:
    schema = {"$ref": f"#/$defs/{SCHEMAS['kinds'][document['kind']]}", "$defs": SCHEMAS["$defs"]}
    return [
        f"{'/'.join(map(str, error.instance_path))}: {error.message}"
        for error in jsonschema_rs.validator_for(schema).iter_errors(document)
    ]


def daemon_set(changes: dict[str, Any]) -> Any:
    (found,) = (item for item in documents(changes) if item["kind"] == "DaemonSet")
    return found["spec"]["template"]["spec"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_object_is_valid_for_the_api(variant: str) -> None:
    found = [item for item in documents(VARIANTS[variant]) if item["kind"] not in OPERATOR_KINDS]

    assert [problem for item in found for problem in problems(item)] == []
    assert len(found) >= 2


def test_the_schemas_do_refuse() -> None:
    (broken,) = (item for item in documents() if item["kind"] == "DaemonSet")
    broken["spec"]["template"]["spec"]["containers"][0]["prts"] = []
    broken["spec"]["template"]["spec"]["hostPID"] = "yes"

    assert len(problems(broken)) >= 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_value_is_allowed_by_the_chart_s_schema(variant: str) -> None:
    schema = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text()))

    schema.validate(merged(default_values(), VARIANTS[variant]))


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": {"intervalSeconds": 0}},
        {"agent": {"hostPid": True}},
        {"agent": {"collectorUrl": "collector:8095"}},
        {"collector": {"storage": "lots"}},
        {"cluster": ""},
    ],
)
def test_a_wrong_value_is_refused_by_the_chart_s_schema(changes: dict[str, Any]) -> None:
    schema = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text()))
    values = {
        key: {**default_values()[key], **value} if isinstance(value, dict) else value
        for key, value in changes.items()
    }

    assert not schema.is_valid({**default_values(), **values})


def test_the_node_s_name_is_the_scheduler_s_never_the_pod_s() -> None:
    environment = {item["name"]: item for item in daemon_set({})["containers"][0]["env"]}

    assert environment["FLOPWATCH_AGENT_NODE"]["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_only_with_the_host_s_processes_does_the_agent_have_capabilities() -> None:
    inside, outside = daemon_set({}), daemon_set({"agent": {"hostPID": False}})
    context = [item["containers"][0]["securityContext"] for item in (inside, outside)]

    assert context[0]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]}
    assert context[1]["capabilities"] == {"drop": ["ALL"]}
    assert [item["allowPrivilegeEscalation"] for item in context] == [False, False]


def test_the_agent_takes_no_gpu_from_the_scheduler() -> None:
    resources = daemon_set({})["containers"][0]["resources"]

    assert not [name for part in resources.values() for name in part if "gpu" in name]


def test_the_collector_writes_nothing_to_the_api() -> None:
    (role,) = (item for item in documents() if item["kind"] == "ClusterRole")

    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not [rule for rule in role["rules"] if "secrets" in rule["resources"]]


def test_what_mounts_and_selects_is_there() -> None:
    for item in documents(VARIANTS["everything"]):
        if item["kind"] not in ("DaemonSet", "StatefulSet"):
            continue
        pod = item["spec"]["template"]
        claims = [claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates", ())]
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]} | set(claims)

        assert {mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]} == volumes
        assert item["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_manifests_are_the_chart_s(name: str) -> None:
    plain = list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))

    assert plain[0]["kind"] == "Namespace"
    assert [{**item, "metadata": {**item["metadata"], "namespace": None}} for item in plain[1:]] == [
        {**item, "metadata": {**item["metadata"], "namespace": None}} for item in documents(PLAIN[name])
    ]
    assert rendered()
