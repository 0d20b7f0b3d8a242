import re
import urllib.error
import urllib.request
from typing import Any

import pytest
from fastapi import FastAPI
from tests.fixtures.dashboard_cluster import ClusterQuery

from flopwatch_dashboard.app import mount


def get(url: str) -> tuple[int, str, Any]:
    request = urllib.request.Request(url, headers={"accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


@pytest.mark.parametrize("path", ["/ui/", "/ui/jobs", "/ui/jobs/a%3Ab/c?range=6h", "/ui/nonsense"])
def test_every_address_below_the_prefix_answers_with_the_page(served: Any, path: str) -> None:
    status, body, _ = get(served.url + path)

    assert status == 200
    assert 'id="react-entry-point"' in body


def test_the_root_leads_to_the_dashboard(served: Any) -> None:
    status, body, _ = get(served.url + "/")

    assert status == 200
    assert 'id="react-entry-point"' in body


def test_the_interface_keeps_its_own_routes_and_unknown_ones_stay_unknown(served: Any) -> None:
    assert get(served.url + "/api/v1/known")[:2] == (200, '{"known":true}')
    assert get(served.url + "/api/v1/unknown")[:2] == (404, '{"detail":"Not Found"}')


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/ui/_mcp"])
def test_the_sub_application_publishes_no_documentation_of_its_own(served: Any, path: str) -> None:
    status, body, _ = get(served.url + path)

    assert status == 404 or 'id="react-entry-point"' in body
    assert "swagger" not in body.lower()


def test_pages_carry_the_security_policy_and_name_no_other_host(served: Any) -> None:
    _, body, headers = get(served.url + "/ui/")
    policy = headers["content-security-policy"]

    assert "default-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", body) == []


def test_answers_of_the_interface_are_left_as_they_are(served: Any) -> None:
    assert get(served.url + "/api/v1/known")[2]["content-security-policy"] is None


@pytest.mark.parametrize("prefix", ["ui/", "/ui", "/"])
def test_a_prefix_that_is_none_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="allowed: a path that begins and ends with '/'"):
        mount(FastAPI(), ClusterQuery(), prefix=prefix)
