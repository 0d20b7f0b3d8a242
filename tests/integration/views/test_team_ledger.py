"""A team's ledger of the Fleet page, from the store, against the report by team of the same period."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.views.site import MIDNIGHT, Site, two_teams

from flopwatch.query import Range, TeamLedger
from flopwatch.viewer import Viewer, entered
from flopwatch_collector.views.of_teams import OfTeams

NODE_MILLISECONDS = 8 * (7_200 - 30) * 1_000
"""Eight GPUs for two hours, known from the first sample on."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with two_teams(tmp_path_factory.mktemp("shared")) as site:
        yield site


def of(site: Site, team: str, **changes: Any) -> TeamLedger:
    found = site.query.fleet(Range(team=team, **changes)).team
    assert found is not None
    return found


def lines(site: Site, ledger: TeamLedger) -> dict[str | None, Any]:
    """The report's lines of the period that the page's ledger is of."""
    period = {"from": repr(ledger.ledger.start_seconds), "to": repr(ledger.ledger.end_seconds), "by": "team"}
    answer = TestClient(site.running.app).get("/api/v1/report", params=period)
    assert answer.status_code == 200, answer.text
    return {line["key"]: line for line in answer.json()["lines"]}


@pytest.mark.parametrize("team", ["nlp", "vision"])
@pytest.mark.parametrize("seconds", [3_600.0, 86_400.0])
def test_a_team_s_figures_are_those_of_the_report_to_the_last_digit(
    shared: Site, team: str, seconds: float
) -> None:
    page = of(shared, team, seconds=seconds)
    found = lines(shared, page)
    line = found[team]

    assert page.ledger.capacity_gpu_milliseconds == line["gpu_milliseconds"]
    assert {each.name: each.gpu_milliseconds for each in page.ledger.classes} == line["by_class"]
    assert page.ledger.waste_gpu_milliseconds == line["waste_gpu_milliseconds"]
    assert page.ledger.waste_money == line["waste_money"]
    assert (page.billed, page.credit) == (line["billed"], line["credit"])
    assert page.nobody_gpu_milliseconds == found[None]["gpu_milliseconds"]


def test_a_team_has_the_hours_that_its_leases_held(shared: Site) -> None:
    busy, idle = of(shared, "nlp"), of(shared, "vision")

    assert busy.ledger.capacity_gpu_milliseconds == NODE_MILLISECONDS
    assert busy.mfu_ratio == pytest.approx(0.40, abs=0.005)
    assert (busy.days[-1].billable_ratio, busy.mean_30d_ratio) == (busy.ledger.billable_ratio,) * 2
    assert [day.billable_ratio for day in busy.days[:-1]] == [None] * 29
    assert idle.ledger.capacity_gpu_milliseconds == NODE_MILLISECONDS
    assert (idle.mfu_ratio, idle.ledger.billable_ratio) == (None, 0.0)
    assert idle.ledger.waste_gpu_milliseconds == NODE_MILLISECONDS
    # 57,360 GPU-seconds held idle at 2.00 an hour.
    assert idle.ledger.waste_money == pytest.approx(31.8667, abs=1e-4)
    assert busy.ledger.waste_gpu_milliseconds == 0
    assert idle.nobody_gpu_milliseconds == NODE_MILLISECONDS


def test_a_team_of_another_cluster_or_of_no_job_held_nothing(shared: Site) -> None:
    for found in (of(shared, "nlp", cluster="b"), of(shared, "audio")):
        assert found.ledger.capacity_gpu_milliseconds == 0
        assert (found.ledger.billable_ratio, found.mfu_ratio, found.mean_30d_ratio) == (None, None, None)
        assert (found.billed, found.ledger.start_seconds < MIDNIGHT) == (None, True)


def test_who_is_of_one_team_gets_no_ledger_of_another(shared: Site) -> None:
    query = OfTeams(shared.query)
    with entered(Viewer(role="viewer", teams=("nlp",))):
        own, other = (query.fleet(Range(team=team)).team for team in ("nlp", "vision"))

    assert own == of(shared, "nlp")
    assert other is None


def test_the_tables_of_a_team_are_its_ledger_and_its_days(shared: Site) -> None:
    client, page = TestClient(shared.running.app), of(shared, "nlp")

    def table(name: str) -> list[dict[str, str]]:
        text = client.get(f"/api/v1/export/{name}.csv", params={"team": "nlp"}).text
        return list(csv.DictReader(io.StringIO(text)))

    assert sum(float(row["gpu_seconds"]) for row in table("ledger")) * 1_000 == NODE_MILLISECONDS
    assert float(table("days")[-1]["billable_ratio"]) == page.days[-1].billable_ratio
