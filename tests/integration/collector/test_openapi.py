"""The OpenAPI document, and the application held against it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient
from tests.integration.collector.serving import Front, front

CHECKS: list[CheckFunction] = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def collector() -> Iterator[Front]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        yield stack.enter_context(front(Path(folder)))


@pytest.fixture(scope="module")
def document(collector: Front) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", collector.app)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_application_keeps_to_its_document(
    document: schemathesis.BaseSchema, mode: GenerationMode
) -> None:
    tried = []
    for operation in (result.ok() for result in document.get_all_operations()):

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=10,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        def ask(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=CHECKS)

        try:
            ask()
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE
            continue
        tried.append(operation.path)

    assert "/api/v1/ingest" in tried
    assert len(tried) >= 9


def test_every_route_has_a_summary_and_documents_its_errors(collector: Front) -> None:
    paths = TestClient(collector.app).get("/api/v1/openapi.json").json()["paths"]

    assert set(paths["/api/v1/ingest"]["post"]["responses"]) >= {
        "200", "401", "403", "413", "415", "422", "429", "500", "503",
    }  # fmt: skip
    for path, methods in paths.items():
        for operation in methods.values():
            assert operation["summary"], path
            assert set(operation["responses"]) > {"200"} or path == "/healthz"


def test_the_document_holds_the_wires_batch(collector: Front) -> None:
    schemas = TestClient(collector.app).get("/api/v1/openapi.json").json()["components"]["schemas"]

    assert {"node", "spool", "sequence"} <= set(schemas["Batch"]["required"])
    assert "StepRecord" in schemas


def test_no_page_that_loads_from_elsewhere_is_served(collector: Front) -> None:
    client = TestClient(collector.app)

    assert [client.get(path).status_code for path in ("/docs", "/redoc", "/openapi.json")] == [404, 404, 404]
