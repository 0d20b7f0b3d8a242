import csv
import dataclasses
import io
from datetime import date
from typing import Any

import pytest
import tomllib
from dash.development.base_component import Component
from tests.fixtures import dashboard_economy as costs
from tests.fixtures.dashboard_cluster import ClusterQuery, days, status

from flopwatch.answers.economy import CostInput, Economy
from flopwatch.query import FoundFact, Job, Range
from flopwatch.run_sizing import size_of
from flopwatch_collector.config_costs import CloudCosts, CostGroup, CostSettings, OwnCosts
from flopwatch_dashboard.components import (
    breakeven_head,
    breakeven_tables,
    cost_file,
    cost_form,
    cost_inputs,
    run_compare,
    run_planner,
)
from flopwatch_dashboard.components.cost_fields import FIELDS
from flopwatch_dashboard.figures import cost_curves, demand, sustained, tornado
from flopwatch_dashboard.pages import breakeven
from flopwatch_dashboard.view import View, from_browser

ENGLISH = View()
# Worked out by hand: A 9,000 + colocation 2,340 + staff 3,125 + maintenance 1,600 = 16,065 a GPU-year;
# F' = 16,065 / 8,760 + 0.1 x 1.3 x 0.3; V = 0.1 x 1.3 x 0.8; rho = 0.386 / 0.39; U* = F' / (rho x 3 - V).
FIXED = 16_065 / 8_760 + 0.039
U_STAR = FIXED / (0.386 / 0.39 * 3.0 - 0.104)


def words(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    if isinstance(tree, list | tuple):
        return " ".join(words(part) for part in tree)
    return words(getattr(tree, "children", None) or "") if isinstance(tree, Component) else ""


def answer(settings: CostSettings = costs.COSTS, **overrides: float) -> Economy:
    named = {name.replace("__", "."): value for name, value in overrides.items()}
    return costs.economy(status(), days(), named, settings)


def page(**inputs: str) -> dict[str, Any]:
    pairs = tuple((name.replace("__", "."), value) for name, value in inputs.items())
    return breakeven.render(ClusterQuery(), View(inputs=pairs), "")


def test_the_tiles_show_the_figures_of_the_answer() -> None:
    shown = words(page()["tiles"])

    assert f"{U_STAR * 100:.1f}" == "65.4"
    for text in (
        "62.5 %",
        "65.4 %",
        "= 1: 64.7%",
        "$1.87 an hour, used or not",
        "608 of 1,024 GPUs",
        "burst 416",
    ):
        assert text in shown


def test_a_year_of_renting_less_owning_is_the_difference_of_both_costs() -> None:
    mean = answer().groups[0].utilisation_ratio
    assert mean is not None

    by_hand = (0.386 / 0.39 * 3.0 * mean - FIXED - 0.104 * mean) * 8_760 * 1_024

    assert breakeven_head.saved_a_year(answer().groups[0]) == pytest.approx(by_hand)
    assert by_hand < 0


def test_the_verdict_names_both_decisions_and_its_arithmetic() -> None:
    shown = words(page()["verdict"])

    assert "Renting is cheaper: utilisation is below the 65.4% line" in shown
    assert "Buy or renew: undecided" in shown
    assert "Keep or retire: keep" in shown
    assert "capital $9,000 + colocation $2,340 + staff $3,125 + maintenance $1,600" in shown
    assert f"= {U_STAR:.2%}" in shown


def test_a_line_beyond_all_hours_reads_never_and_one_without_a_price_is_unknown() -> None:
    never = page(cloud__price_per_gpu_hour="1.70")
    query = ClusterQuery()
    query.costs = CostSettings(own=costs.OWN)
    unpriced = breakeven.render(query, ENGLISH, "")

    assert "At these costs owning pays at no utilisation" in words(never["verdict"])
    assert "Breakeven U* never" in words(never["tiles"])
    assert "there is no cloud price to compare with" in words(unpriced["verdict"])
    assert "Breakeven U* n/a" in words(unpriced["tiles"])
    assert "set [costs.cloud]" in words(unpriced["notes"])


def test_typed_inputs_change_the_figures_and_the_saved_line_stays_beside_them() -> None:
    shown = page(own__life_years="5", cloud__price_per_gpu_hour="2.4")
    line = (16_065 - 9_000 + 7_200) / 8_760 + 0.039

    assert f"{line / (0.386 / 0.39 * 2.4 - 0.104) * 100:.1f} %" in words(shown["tiles"])
    assert "changed here: 2 · nothing is saved. With the saved costs U* is 65.4%" in words(shown["changes"])


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("own.life_years", "abc", 'own.life_years is "abc"; allowed: a number such as 3, 8% or 0.08'),
        ("own.life_years", "0", "own.life_years is 0.0; allowed: above 0, at most 100"),
        ("own.nothing", "1", "own.nothing"),
        ("cloud.billed_per_used", "nan", 'cloud.billed_per_used is "nan"'),
    ],
)
def test_what_is_not_allowed_is_named_and_the_saved_figures_stay(name: str, text: str, told: str) -> None:
    shown = breakeven.render(ClusterQuery(), View(inputs=((name, text),)), "")

    assert told in words(shown["changes"])
    assert "65.4 %" in words(shown["tiles"])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("40,000", 40_000.0),
        ("8%", 0.08),
        (" 2.5 ", 2.5),
        ("1e3", 1e3),
        ("1,5", None),
        ("inf", None),
        ("", None),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, number: float | None) -> None:
    assert cost_inputs.amount(text) == (None if number is None else pytest.approx(number))


def test_inputs_of_the_address_are_kept_short_and_in_order() -> None:
    view = from_browser(
        {"inputs": [["b.x", "1"], ["a.y", "2"], ["b.x", "9"], "no", ["a.z", "x" * 999]]}, "/ui/"
    )

    assert view.inputs == (("a.y", "2"), ("a.z", "x" * 200), ("b.x", "1"))


def test_without_costs_the_page_says_which_settings_to_give() -> None:
    query = ClusterQuery()
    query.costs = None

    shown = breakeven.render(query, ENGLISH, "")

    assert shown["body"] == "hidden"
    assert "capex_per_gpu = 40000" in words(shown["unset"])
    assert tomllib.loads(cost_file.example())["costs"]["cloud"]["price_per_gpu_hour"] == 3.0


def test_the_cost_file_holds_what_is_shown_and_reads_back() -> None:
    text = cost_file.toml(answer(own__capex_per_gpu=35_000.0), ENGLISH)

    read = tomllib.loads(text)["costs"]
    assert text.startswith("# SIMULATED\n")
    given = {name: float(value) for name, value in read["own"].items()}
    assert OwnCosts(**given) == dataclasses.replace(costs.OWN, capex_per_gpu=35_000.0)
    assert read["cloud"]["price_date"] == date(2026, 7, 1)
    assert read["cloud"]["price_source"] == "example"
    assert "own_goodput" not in read["efficiency"]


def test_the_table_of_figures_says_simulated_and_runs_nothing_in_a_spreadsheet() -> None:
    rows = list(csv.reader(io.StringIO(cost_file.table(answer()))))
    rented = [row for row in rows if row[2:4] == ["curve", "cloud"] and row[4] == "1"]

    assert {row[0] for row in rows[1:]} == {"SIMULATED"}
    assert float(rented[0][5]) == pytest.approx(0.386 / 0.39 * 3.0)
    assert [row for row in rows if any(cell[:1] in "=@" for cell in row if cell)] == []


def test_every_number_of_the_cost_settings_has_a_box() -> None:
    adjustable = {entry.name for entry in answer().inputs if entry.adjustable}

    assert adjustable - set(FIELDS) == {"cloud.gpus_per_server"}


def test_groups_have_lines_of_their_own_and_the_one_asked_for_is_shown() -> None:
    owned = CostGroup(name="h100", own=costs.OWN, cloud=costs.CLOUD, gpus=1_024.0)
    leased = CostGroup(
        name="h.200",
        kind="leased",
        own=OwnCosts(fixed_per_gpu_hour=2.50),
        cloud=CloudCosts(price_per_gpu_hour=4.20),
        gpus=64.0,
    )
    query = ClusterQuery()
    query.costs = CostSettings(group=(owned, leased))

    first = breakeven.render(query, ENGLISH, "")
    typed = (("group.shown", "h.200"), ("h.200.cloud.price_per_gpu_hour", "5"))
    second = breakeven.render(query, View(inputs=typed), "")

    assert "64.7 %" in words(first["tiles"])
    assert "50.0 %" in words(second["tiles"])
    assert first["groups-row"] == ""
    assert "h.200 leased 64 $2.50 $4.20 59.5%" in words(first["groups"])
    kept = tomllib.loads(cost_file.toml(query.economy(ENGLISH.asked, {}), ENGLISH))["costs"]["group"]
    assert {group["name"]: group["kind"] for group in kept} == {"h.200": "leased", "h100": "owned"}


def test_the_curves_meet_at_the_line_and_a_commitment_has_its_kink() -> None:
    group = answer(cloud__commitment_ratio=0.5, cloud__commitment_price_per_gpu_hour=2.1).groups[0]

    figure = cost_curves.cost_curves(group, "USD", ENGLISH)

    assert cost_curves.kink_of(group) == pytest.approx(0.5 / (0.386 / 0.39))
    uprights = [shape["x0"] for shape in figure["layout"]["shapes"] if shape["type"] == "line"]
    assert group.u_star in uprights
    assert len(uprights) == 3


def test_the_tornado_draws_never_as_never() -> None:
    group = answer(cloud__price_per_gpu_hour=2.2).groups[0]

    texts = [note["text"] for note in tornado.tornado(group, ENGLISH)["layout"]["annotations"]]

    assert "-20% · never" in texts
    assert "Cloud price" in tornado.description(group, ENGLISH)


def test_the_demand_figure_is_described_with_what_is_worth_owning() -> None:
    group = answer().groups[0]

    told = demand.description(group, ENGLISH)
    assert told.startswith("Demand: 608 GPUs are asked for during more than U* of the time, 416 more")
    assert demand.demand(dataclasses.replace(group, demand=None), ENGLISH)["data"] == []


def test_the_cell_of_the_inputs_is_marked_in_the_table() -> None:
    group = answer().groups[0]

    table = breakeven_tables.price_table(group, "USD", ENGLISH)

    cells = [td.children for row in table.children[1].children for td in row.children]
    marked = [cell.children for cell in cells if "used" in str(getattr(cell, "className", ""))]
    assert marked == ["65.4%"]


def test_notes_are_in_the_readers_language_with_their_values() -> None:
    shown = words(breakeven_tables.notes(answer(), answer().groups[0], View(lang="zh")))

    assert "价格已过期：2026年7月1日，152 天前" in shown  # noqa: RUF001
    assert "28 个有效日" in shown


def test_the_planner_counts_whole_nodes_and_spares() -> None:
    typed = {"params": 70e9, "tokens": 2e12, "peak_tflops": 989.4, "days": 30.0, "mfu": 0.40, "goodput": 0.90}

    size = size_of(run_planner.run_of({**typed, "spares": 0.05, "gpus_per_node": 8.0}))

    assert (size.gpus, size.gpus_in_nodes, size.gpus_with_spares) == (910, 912, 960)
    assert run_planner.scaled("70B") == 70e9


def test_the_planner_names_what_is_not_allowed() -> None:
    shown = words(run_planner.planner(answer(), answer().groups[0], View(inputs=(("plan.mfu", "140%"),))))

    assert 'MFU is "140%"; allowed: a share above 0, at most 100%' in shown


def test_runs_whose_batch_is_not_known_are_refused_with_the_reason() -> None:
    view = View(inputs=(("compare.other", "train-a-1004"), ("compare.own", "train-a-1001")))
    unknown = View(inputs=(("compare.other", "nowhere"), ("compare.own", "train-a-1001")))

    refused = words(run_compare.compare(ClusterQuery(), answer().groups[0], view))

    assert "These runs cannot be compared" in refused
    assert "the global batch size is not known of train-a-1001, train-a-1004" in refused
    assert "nowhere" in words(run_compare.compare(ClusterQuery(), answer().groups[0], unknown))


def test_a_measured_input_is_rounded_so_that_the_box_does_not_change_at_every_tick() -> None:
    entry = CostInput(name="efficiency.own_mfu", value=0.392754, source="measured", adjustable=True)

    assert cost_form.plain(entry) == "0.393"
    assert cost_form.plain(dataclasses.replace(entry, value=989.4)) == "989.4"
    assert cost_form.plain(dataclasses.replace(entry, value=0.392754, source="file")) == "0.392754"


def test_money_of_a_plan_is_that_of_capacity_when_owned_and_of_work_when_rented() -> None:
    group = answer(efficiency__cloud_goodput=0.95, efficiency__cloud_peak_tflops=989.4).groups[0]
    typed = {"params": 70e9, "tokens": 2e12, "peak_tflops": 989.4, "days": 30.0, "mfu": 0.40, "goodput": 0.90}
    run = run_planner.run_of({**typed, "spares": 0.05, "gpus_per_node": 8.0})
    size = size_of(run)

    working = 6 * 70e9 * 2e12 / (989.4e12 * 0.36) / 3_600
    rented = 6 * 70e9 * 2e12 / (989.4e12 * 0.39 * 0.95) / 3_600

    assert run_planner.own_cost(size, group) == pytest.approx(FIXED * 960 * 720 + 0.104 * working)
    assert run_planner.cloud_cost(run, size, group) == pytest.approx(rented * 3.0)
    assert run_planner.cloud_cost(run, size, dataclasses.replace(group, cloud_price=None)) is None


def test_runs_that_are_alike_stand_side_by_side() -> None:
    class Alike(ClusterQuery):
        def job(self, job_id: str, asked: Range) -> Job | None:
            found = super().job(job_id, asked)
            facts = {"global_batch_size": 1_024, "sequence_length": 8_192, "dtype": "bf16"}
            known = tuple(
                FoundFact(name=name, value=value, source="log", origin="log") for name, value in facts.items()
            )
            return None if found is None else dataclasses.replace(found, found=known)

    view = View(inputs=(("compare.other", "train-a-1004"), ("compare.own", "train-a-1001")))

    shown = words(run_compare.compare(Alike(), answer().groups[0], view))

    assert "cannot be compared" not in shown
    assert "Step MFU 31.2% 36.9%" in shown
    assert "A used GPU-hour $3.10 $3.00" in shown


def test_days_at_or_over_the_line_are_counted_and_days_without_data_are_no_zero() -> None:
    group = answer().groups[0]
    figure = sustained.sustained(group, days(), ENGLISH)

    # Of 28 finished days with data 11 reach 65.37 %; today is not over.
    assert sustained.description(group, days(), ENGLISH) == "11 of 28 valid days are at or above U* 65.4%."
    assert [len(trace["x"]) for trace in figure["data"]] == [30, 30]
    assert sustained.sustained(group, (), ENGLISH)["data"] == []


def test_a_source_without_a_ledger_is_not_told_to_set_costs() -> None:
    query = ClusterQuery()
    query.costs = None
    query.frame = dataclasses.replace(query.frame, unavailable=("ledger", "money"))

    shown = breakeven.render(query, ENGLISH, "")

    assert "cannot tell what was billable" in words(shown["verdict"])
    assert "capex_per_gpu" not in words(shown["unset"])
    assert "flopwatch breakeven --costs costs.toml --utilisation 0.7" in words(shown["unset"])
