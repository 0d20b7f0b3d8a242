"""The pages of nodes and GPUs: what is chosen, where a GPU is drawn, what its colour and its words say."""

import base64
import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from tests.fixtures import dashboard_cluster, dashboard_nodes

from flopwatch.answers.nodes import GpuColumns, JobRef, Nodes
from flopwatch_dashboard import app
from flopwatch_dashboard.components import frame, node_choice, node_grid
from flopwatch_dashboard.figures import heatmap
from flopwatch_dashboard.figures.heatmap import NOTHING, SILENT, UNKNOWN, Scale
from flopwatch_dashboard.pages import gpu, node, node_map, nodes
from flopwatch_dashboard.view import View

ENGLISH = View(lang="en")
JOBS = (JobRef(job_id="1", name="llama"), JobRef(job_id="2", name="moe"))


def some(count: int = 40) -> Nodes:
    return dashboard_nodes.nodes_of(count, JOBS, dashboard_cluster.status())


def words(component: Any) -> str:
    """All text in a tree of components."""
    if component is None:
        return ""
    if isinstance(component, str | int | float):
        return str(component)
    if isinstance(component, list | tuple):
        return " ".join(words(each) for each in component)
    return words(getattr(component, "children", None))


def chosen(text: str) -> node_choice.Choice:
    view = dataclasses.replace(ENGLISH, inputs=tuple(sorted(tuple(one.split("=")) for one in text.split())))  # type: ignore[arg-type]
    return node_choice.chosen(some(), view)


def test_a_byte_says_value_unknown_or_silent_and_zero_is_none_of_them() -> None:
    codes = heatmap.coded(
        (0.0, 1.0, 0.5, None, 0.7, 2.0), (True, True, True, True, False, True), Scale(low=0, high=1)
    )

    # 249 steps: half of them is 124.5, which is rounded to even
    assert codes.tolist() == [0, 249, 124, UNKNOWN, SILENT, 249]


@pytest.mark.parametrize(
    ("most", "high"),
    [
        (0.0, 8.0),
        (690.0, 800.0),
        (700.0, 800.0),
        (801.0, 1_000.0),
        (1.99e9, 2e9),
        (9.5e10, 1e11),
        (1.1e11, 1.6e11),
    ],
)
def test_a_scale_ends_at_a_round_number(most: float, high: float) -> None:
    assert node_map.rounded_up(most) == pytest.approx(high)


def test_nodes_stand_beside_each_other_in_groups_and_groups_stay_whole() -> None:
    groups = [(f"rack {at}", list(range(at * 16, at * 16 + 16))) for at in range(40)]
    gpus = [list(range(at * 8, at * 8 + 8)) for at in range(640)]

    placed = heatmap.place(groups, gpus, ENGLISH)

    shown = placed.cells[placed.cells >= 0]
    assert sorted(shown.tolist()) == list(range(640 * 8))
    # each node is one column of eight, its corner is its first GPU
    for at in (0, 15, 16, 639):
        row, column = placed.corners[at].tolist()
        assert placed.cells[row : row + 8, column].tolist() == gpus[at]
    # sixteen neighbours in one band, then a free column
    for at in range(40):
        rows = placed.corners[at * 16 : at * 16 + 16]
        assert len(set(rows[:, 0].tolist())) == 1
        assert np.diff(rows[:, 1]).tolist() == [1] * 15
    assert len(placed.labels) == 40
    assert 0.4 < placed.cell_width / placed.cell_height < 2.5


@pytest.mark.parametrize("count", [1, 2, 7, 300, 2_500])
def test_any_number_of_nodes_finds_its_place_once(count: int) -> None:
    placed = heatmap.place([("a", list(range(count)))], [[at] for at in range(count)], ENGLISH)

    assert sorted(placed.cells[placed.cells >= 0].tolist()) == list(range(count))


def test_the_picture_has_a_byte_a_cell_and_nothing_where_no_gpu_is() -> None:
    placed = heatmap.place([("a", [0]), ("b", [1])], [[0, 1], [2]], ENGLISH)
    picture = heatmap.filled(placed, np.array([7, 8, 9], dtype=np.uint8))
    drawn = heatmap.figure(placed, picture, heatmap.ramp_scale(Scale(low=0, high=1), ENGLISH), ENGLISH)

    sent = np.frombuffer(base64.b64decode(drawn["data"][0]["z"]["bdata"]), dtype=np.uint8)
    assert sorted(sent[sent != NOTHING].tolist()) == [7, 8, 9]
    assert drawn["data"][0]["z"]["shape"] == f"{picture.shape[0]}, {picture.shape[1]}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_rise_from_0_to_1_and_zero_unknown_and_silent_differ(theme: Any) -> None:
    view = View(theme=theme)
    stops = heatmap.ramp_scale(Scale(low=0, high=1), view)

    places = [place for place, _ in stops]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 1.0)
    zero = heatmap.RAMPS[theme]["cool"][0]
    assert len({zero, heatmap.EMPTY[theme], heatmap.GONE[theme], view.palette["card"]}) == 4


def test_the_address_chooses_and_what_it_cannot_choose_counts_as_not_given() -> None:
    assert chosen(
        "nodes.metric=power nodes.group=cluster nodes.show=silent nodes.find=r01"
    ) == node_choice.Choice(metric="power_watts", grouping="cluster", show="silent", find="r01")
    assert chosen("nodes.metric=nonsense nodes.group=moon nodes.show=7") == node_choice.Choice(
        metric="state", grouping="rack"
    )
    # nobody gives SM activity here
    assert chosen("nodes.metric=sm_active").metric == "state"


def test_without_a_ledger_neither_state_nor_health_is_offered() -> None:
    found = dataclasses.replace(some(), buckets=(), classes=())

    assert node_choice.offered(found)[0] == "kernel_active_ratio"
    assert node_choice.chosen(found, ENGLISH).metric == "kernel_active_ratio"


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"show": "silent"}, ["r00-n05", "r01-n05", "r02-n05"]),
        ({"show": "problems"}, ["r00-n05", "r00-n09", "r00-n12", "r01-n05", "r02-n05"]),
        ({"find": "r02 n07"}, ["r02-n07"]),
        ({"find": "drain"}, ["r00-n09"]),
        ({"find": "nothing like it"}, []),
    ],
)
def test_nodes_are_chosen_by_condition_and_words(choice: dict[str, str], names: list[str]) -> None:
    found = some()
    places = node_choice.fitting(found, node_choice.Choice(metric="state", grouping="rack", **choice))

    assert [found.nodes[at].node for at in places] == names


def test_nodes_of_a_job_are_found_by_its_name() -> None:
    found = some(16)
    places = node_choice.fitting(found, node_choice.Choice(metric="state", grouping="rack", find="moe"))

    # nodes 8 to 15 work for the second job; the node of which nothing is leased is not among them
    assert places == (8, 9, 10, 12, 13, 14, 15)


def test_a_row_has_the_means_of_gpus_that_report_and_the_worst_stands_first() -> None:
    found = some(16)
    rows = node_grid.rows(found, range(16), ENGLISH)
    by_name = {row["name"]: row for row in rows}

    assert [row["name"] for row in rows[:3]] == ["r00-n09", "r00-n12", "r00-n05"]
    own = [value for value in found.gpus.values["power_watts"][8:16] if value is not None]
    assert by_name["r00-n01"]["power"] == round(sum(own) / 8)
    assert "power" not in by_name["r00-n05"]  # silent: its last values are no means of now
    assert by_name["r00-n05"]["gpus_text"] == "0 / 8"
    assert by_name["r00-n03"]["kernel"] == 0.0  # free: zero is known


def test_a_page_of_ten_thousand_gpus_is_small() -> None:
    query = dashboard_cluster.ClusterQuery()
    query.node_count = 1_250

    found = nodes.PAGE.render(
        query, dataclasses.replace(ENGLISH, inputs=(("nodes.metric", "tensor_active"),)), ""
    )

    assert set(found) == set(nodes.PAGE.parts)
    assert len(json.dumps(found["base"])) < 60_000
    assert len(json.dumps(found["place"])) < 60_000
    assert len(json.dumps(found["now"])) < 60_000


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_part_of_the_pages_is_rendered(lang: Any, theme: Any) -> None:
    query, view = dashboard_cluster.ClusterQuery(), View(lang=lang, theme=theme)

    for page, item in ((nodes.PAGE, ""), (node.PAGE, "r00-n09"), (gpu.PAGE, "GPU-00000009-2")):
        assert set(page.render(query, view, item)) == set(page.parts)


def test_a_node_that_is_not_there_says_where_to_go() -> None:
    query = dashboard_cluster.ClusterQuery()

    assert "There is no node n99" in words(node.PAGE.render(query, ENGLISH, "n99")["gone"])
    assert "There is no GPU GPU-x" in words(gpu.PAGE.render(query, ENGLISH, "GPU-x")["gone"])


def test_a_fleet_without_nodes_says_what_to_do() -> None:
    query = dashboard_cluster.ClusterQuery()
    query.node_count = 0

    assert "flopwatch agent" in words(nodes.PAGE.render(query, ENGLISH, "")["empty"])


def test_the_node_page_tells_health_declarations_ports_and_lemons() -> None:
    found = node.PAGE.render(dashboard_cluster.ClusterQuery(), ENGLISH, "r00-n09")

    told = words(found["condition"])
    assert "A GPU is lost" in told
    assert "drained since 30 Nov 2026 12:42, says Slurm." in told
    assert "At fault in 5 incidents of 4 jobs within two weeks (GpuLost, Straggler)." in told
    ports = words(found["ports"])
    # 11.5 GB/s are 92 of 400 Gb/s
    assert "23%" in ports
    assert "down" in ports
    assert "XID 79" in words(found["events"])
    assert "node_fail" in words(found["jobs"])


def test_a_job_that_may_not_be_seen_has_no_name() -> None:
    found = some(8)
    hidden = dataclasses.replace(found, jobs=(JobRef(job_id="", name=""), JobRef(job_id="", name="")))

    assert {row["jobs"] for row in node_grid.rows(hidden, range(8), ENGLISH)} <= {"n/a", ""}


def test_columns_of_gpus_are_of_one_length() -> None:
    gpus: GpuColumns = some().gpus

    lengths = {len(getattr(gpus, name)) for name in ("node", "index", "bucket", "health", "job", "reporting")}
    assert lengths | {len(column) for column in gpus.values.values()} == {320}


def test_no_part_of_a_page_is_named_as_one_of_the_frame() -> None:
    for page in app.PAGES:
        assert set(page.parts) & set(frame.PARTS) == set()
