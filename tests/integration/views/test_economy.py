"""The Breakeven page's answer, each figure worked out from the costs and from what was pushed."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient
from tests.fixtures.listening import Server
from tests.integration.views.site import GPUS_A_NODE, MIDNIGHT, Site, job_ref

from flopwatch.answers.economy import Economy
from flopwatch.query import Range
from flopwatch_collector.breakeven_command import main as breakeven
from flopwatch_collector.config_cost_file import read_costs
from flopwatch_collector.config_costs import CostSettings

OWN = {
    "gpus": 16, "capex_per_gpu": 40_000, "life_years": 4, "residual_ratio": 0.1, "electricity_per_kwh": 0.10,
    "pue": 1.3, "idle_kw_per_gpu": 0.30, "busy_kw_per_gpu": 1.10,
}  # fmt: skip
# 9,000 / 8760 + 0.039 for an idle hour, 0.104 more for a busy one.
FIXED, VARIABLE = 1.066397, 0.104
GROUPS = [
    {"name": "bought", "nodes": ["n1"]},
    {"name": "rented", "kind": "leased", "nodes": ["n2*"], "fixed_per_gpu_hour": 1.5},
]


def costs(**tables: object) -> CostSettings:
    return read_costs({"costs": {"own": OWN, "cloud": {"price_per_gpu_hour": 3.0}, **tables}}, {})


def site_with(folder: Path, settings: CostSettings) -> Site:
    """Two nodes for an hour: one works unmeasured, one stands free."""
    site = Site(folder, costs=settings)
    busy = {"kernel_active_ratio": 0.9, "process_count": 1}
    site.push("n1", MIDNIGHT, 3_600.0, job=job_ref(), samples=busy)
    site.push("n2", MIDNIGHT, 3_600.0)
    site.running.accounting.tick(site.now)
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = site_with(tmp_path_factory.mktemp("site"), costs())
    yield made
    made.close()


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Site]:
    made = site_with(tmp_path, costs(group=GROUPS))
    yield made
    made.close()


def test_money_is_the_fixed_cost_of_all_hours_and_the_variable_cost_of_busy_ones(site: Site) -> None:
    ledger = site.query.fleet(Range()).ledger_today

    money = {amount.name: amount.money for amount in ledger.classes}
    hours = {amount.name: amount.gpu_milliseconds / 3.6e6 for amount in ledger.classes}
    assert hours["unmeasured"] > 0.5 * GPUS_A_NODE
    assert money["unmeasured"] == pytest.approx(hours["unmeasured"] * (FIXED + VARIABLE), rel=1e-5)
    assert money["unallocated"] == pytest.approx(hours["unallocated"] * FIXED, rel=1e-5)


def test_the_frame_shows_both_parts_of_the_price_and_the_page_the_worked_out_line(site: Site) -> None:
    page = site.query.fleet(Range())

    assert page.status.price_per_gpu_hour == pytest.approx(FIXED, abs=1e-6)
    assert page.status.variable_per_gpu_hour == pytest.approx(VARIABLE)
    assert page.verdict.line_source == "costs"
    assert page.verdict.line_ratio == pytest.approx(FIXED / (3.0 - VARIABLE), abs=1e-6)


def test_the_page_and_the_fleet_have_one_line(site: Site) -> None:
    page = site.query.economy(Range(), {})

    assert page.u_star == site.query.fleet(Range()).verdict.line_ratio
    assert (page.configured, page.verdict) == (True, "insufficient_data")
    (group,) = page.groups
    assert (group.name, group.gpus, group.enough_for_purchase) == ("site", 16, False)
    assert [each.name for each in group.decisions] == ["buy_or_renew", "keep_or_retire"]
    assert "short_history" in [note.code for note in group.notes]


def test_an_input_that_is_changed_moves_the_line_and_says_so(site: Site) -> None:
    page = site.query.economy(Range(), {"cloud.price_per_gpu_hour": 1.0})

    assert (page.u_star, page.has_line) == (None, True)
    assert {each.name: each.source for each in page.inputs}["cloud.price_per_gpu_hour"] == "override"
    assert site.query.economy(Range(), {}).u_star == pytest.approx(FIXED / (3.0 - VARIABLE), abs=1e-6)


def test_a_line_that_no_utilisation_reaches_is_never_on_the_fleet_page_too(tmp_path: Path) -> None:
    site = site_with(tmp_path, costs(cloud={"price_per_gpu_hour": 1.0}))

    verdict = site.query.fleet(Range()).verdict

    assert (verdict.never, verdict.line_ratio, verdict.cost_at_line) == (True, 1.0, None)
    site.close()


def test_each_group_of_nodes_has_its_own_money_and_line(grouped: Site) -> None:
    page = grouped.query.economy(Range(), {})
    money = {
        each.name: (each.money, each.gpu_milliseconds / 3.6e6)
        for each in grouped.query.fleet(Range()).ledger_today.classes
    }

    bought, rented = page.groups
    assert (bought.gpus, rented.gpus) == (8, 8)
    # The one works all day, the other stands free.
    assert bought.days[-1].billable_ratio == pytest.approx(1.0, abs=0.02)
    assert rented.days[-1].billable_ratio == 0.0
    assert bought.u_star == pytest.approx(FIXED / (3.0 - VARIABLE), abs=1e-6)
    assert rented.u_star == pytest.approx(0.5)
    # Weighted by what the groups cost: F' x GPUs.
    weighted = (FIXED * bought.u_star + 1.5 * 0.5) / (FIXED + 1.5)
    assert page.u_star == pytest.approx(weighted, abs=1e-6)
    assert page.fixed_per_gpu_hour == pytest.approx((FIXED + 1.5) / 2, abs=1e-6)
    amount, hours = money["unallocated"]
    assert amount == pytest.approx(hours * 1.5, rel=1e-6)


def test_the_answer_travels_over_http_and_refuses_what_is_no_input(site: Site) -> None:
    client = TestClient(site.running.app)

    good = client.get("/api/v1/query/economy", params={"overrides": "own.capex_per_gpu=20000"})
    unknown = client.get("/api/v1/query/economy", params={"overrides": "own.colour=1"})
    wrong = client.get("/api/v1/query/economy", params={"overrides": "own.pue=0.5"})
    broken = client.get("/api/v1/query/economy", params={"overrides": "own.pue"})

    answer = msgspec.json.decode(good.content, type=Economy)
    assert answer.groups[0].terms[0].per_gpu_year == pytest.approx(4_500.0)
    assert [each.status_code for each in (unknown, wrong, broken)] == [422, 422, 422]
    assert "own.colour" in unknown.json()["message"]
    assert "costs.own.pue is 0.5" in wrong.json()["message"]


def test_without_costs_nothing_is_said(tmp_path: Path) -> None:
    site = site_with(tmp_path, CostSettings(price_per_gpu_hour=2.0))

    page = site.query.economy(Range(), {})

    assert (page.configured, page.groups, page.u_star, page.verdict) == (False, (), None, "insufficient_data")
    assert site.query.fleet(Range()).verdict.line_source == "default"
    site.close()


def test_the_command_takes_what_the_collector_measured(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "costs.toml"
    file.write_text(
        "[costs.own]\nfixed_per_gpu_hour = 1.0\n[costs.cloud]\nprice_per_gpu_hour = 2.0\n"
        "[costs.efficiency]\ncloud_mfu = 0.4\n"
    )
    server = Server(site.running.app).start()

    status = breakeven(["--costs", str(file), "--collector", server.url, "--json"])

    server.stop()
    answer = json.loads(capsys.readouterr().out)
    assert (status, answer["gpus"], answer["u_star"]) == (0, 16, 0.5)
    assert (answer["verdict"], answer["valid_days"], answer["enough_for_purchase"]) == (
        "insufficient_data",
        0,
        False,
    )
    # Nothing was trained, so there is no MFU to set beside the cloud's.
    assert (answer["efficiency_ratio"], answer["efficiency"]["one_sided"]) == (1.0, ["mfu"])


def test_a_collector_that_does_not_answer_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "costs.toml"
    file.write_text("[costs.own]\nfixed_per_gpu_hour = 1.0\n[costs.cloud]\nprice_per_gpu_hour = 2.0\n")

    assert breakeven(["--costs", str(file), "--collector", "http://127.0.0.1:9"]) == 1

    assert "does not answer" in capsys.readouterr().err
