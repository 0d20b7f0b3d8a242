import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from dash import dcc
from dash.development.base_component import Component
from plotly.io.json import to_json_plotly
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import WASTE_CLASSES, ClusterInfo, FindingInfo, Fleet, FoundFact, Job, Range, Term
from flopwatch_dashboard.app import PAGES
from flopwatch_dashboard.components import frame
from flopwatch_dashboard.page import Page, match
from flopwatch_dashboard.pages import alerts, breakeven, fleet, job, jobs, missing
from flopwatch_dashboard.view import View

ENGLISH, CHINESE = View(), View(lang="zh")
ALL: tuple[tuple[Page, str], ...] = (
    (fleet.PAGE, ""), (jobs.PAGE, ""), (job.PAGE, "train-a-1001"), (breakeven.PAGE, ""), (alerts.PAGE, ""),
    (missing.PAGE, "nowhere"),
)  # fmt: skip
NAMES = [page.name for page, _ in ALL]


class Changed(cluster.ClusterQuery):
    """The cluster with some fields of its Fleet answer replaced."""

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self.changes = changes

    def fleet(self, asked: Range) -> Fleet:
        return dataclasses.replace(super().fleet(asked), **self.changes)


def components(tree: Any) -> Iterator[Component]:
    if isinstance(tree, Component):
        yield tree
        yield from components(getattr(tree, "children", None))
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from components(part)


def words(tree: Any) -> str:
    """All text of a component tree, titles and labels left out."""
    if isinstance(tree, str):
        return tree
    if isinstance(tree, list | tuple):
        return " ".join(words(part) for part in tree)
    return words(getattr(tree, "children", None) or "")


@pytest.mark.parametrize(("page", "item"), ALL, ids=NAMES)
@pytest.mark.parametrize("view", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_part_of_a_page_gets_a_value_and_every_value_has_a_place(
    page: Page, item: str, view: View
) -> None:
    parts = page.render(cluster.ClusterQuery(), view, item)

    assert set(parts) == set(page.parts)
    assert to_json_plotly(parts)


@pytest.mark.parametrize(("page", "item"), ALL, ids=NAMES)
def test_every_place_stands_in_the_skeleton(page: Page, item: str) -> None:
    ids = {getattr(part, "id", None) for part in components(page.skeleton())}

    assert {target for target, _ in page.parts.values()} <= ids


@pytest.mark.parametrize(("page", "item"), ALL, ids=NAMES)
def test_graphs_offer_only_the_picture_button_and_are_described(page: Page, item: str) -> None:
    graphs = [part for part in components(page.skeleton()) if isinstance(part, dcc.Graph)]
    described = {target for target, prop in page.parts.values() if prop == "aria-label"}

    assert all(graph.config["modeBarButtons"] == [["toImage"]] for graph in graphs)
    assert {f"{graph.id}-wrap" for graph in graphs} <= described


@pytest.mark.parametrize(("page", "item"), ALL, ids=NAMES)
def test_nothing_that_refreshes_is_inside_a_loading_spinner(page: Page, item: str) -> None:
    assert not any(isinstance(part, dcc.Loading) for part in components(page.skeleton()))


def test_tiles_and_waterfall_derive_from_the_same_ledger() -> None:
    parts = fleet.PAGE.render(cluster.ClusterQuery(), ENGLISH, "")
    ledger = cluster.TODAY
    amounts = {amount.name: amount.gpu_milliseconds for amount in ledger.classes}

    tiles = words(parts["tiles"])
    bars = parts["fall"]["data"][0]["x"]
    # (stalled 610 + in-job loss 1,960 + productive 6,979.8 + unmeasured 700) / 15,564.8 = 65.9 %
    assert "65.9 %" in tiles
    assert bars[1:] == list(amounts.values())
    assert sum(amounts[name] for name in WASTE_CLASSES) == 4_160 * cluster.HOUR
    assert "4,160 GPU-h" in tiles
    assert "$10,400" in tiles


def test_the_waste_tile_shows_waste_only_and_not_what_was_unallocated() -> None:
    tile = fleet.PAGE.render(cluster.ClusterQuery(), ENGLISH, "")["tiles"][2]

    bars = [
        part.className for part in components(tile) if str(getattr(part, "className", "")).startswith("sb-")
    ]
    assert bars == ["sb-allocated-idle", "sb-stalled", "sb-in-job-loss"]


def test_without_a_price_there_is_no_money_and_the_page_says_what_to_do() -> None:
    query = cluster.ClusterQuery()
    query.frame = cluster.status(price_per_gpu_hour=None, price_is_example=False)
    bare = dataclasses.replace(cluster.verdict(), cost_at_mean=None, cost_at_line=None)
    changed = Changed(verdict=bare, status=query.frame)

    parts = fleet.PAGE.render(changed, ENGLISH, "")

    assert "n/a no price set" in " ".join(words(parts["tiles"][3]).split())
    assert "[costs]" in words(parts["verdict"])
    assert "$" not in words(parts["verdict"])


def test_without_a_target_the_tile_says_so() -> None:
    query = Changed(
        mfu_target_ratio=None,
        mfu=dataclasses.replace(cluster.fleet(Range(), cluster.status()).mfu, reference=None),
    )

    assert "no target set" in words(fleet.PAGE.render(query, ENGLISH, "")["tiles"][1])


def test_an_unknown_figure_is_not_drawn_as_zero() -> None:
    nothing = dataclasses.replace(cluster.fleet(Range(), cluster.status()).mfu, value=None, spark=())

    tile = fleet.PAGE.render(Changed(mfu=nothing), ENGLISH, "")["tiles"][1]

    assert "n/a" in words(tile)
    assert any(getattr(part, "className", "") == "bul unknown" for part in components(tile))


def test_a_fleet_without_nodes_says_what_to_do_next_with_the_command() -> None:
    empty = cluster.status(clusters=(ClusterInfo(name="train-a", nodes=0, gpus=0, gpus_reporting=0),))

    said = words(fleet.PAGE.render(Changed(status=empty), ENGLISH, "")["verdict"])

    assert "flopwatch agent" in said
    assert "flopwatch demo" in said


@pytest.mark.parametrize(
    ("code", "tone"), [("above_sustained", "good"), ("below", "warning"), ("insufficient_data", "info")]
)
def test_the_strip_has_the_tone_of_the_verdict(code: str, tone: str) -> None:
    parts = fleet.PAGE.render(Changed(verdict=cluster.verdict(code=code)), ENGLISH, "")

    assert parts["tone"] == f"summary tone-{tone}"


def test_every_frame_says_simulated_and_example_when_it_is_so() -> None:
    real = cluster.status(simulated=False, price_is_example=False)

    assert words(frame.chips(cluster.status(), ENGLISH)) == "train-a · 1,024 GPUs SIMULATED example price"
    assert words(frame.chips(cluster.status(), CHINESE)) == "train-a · 1,024 卡 模拟数据 示例价格"
    assert words(frame.chips(real, ENGLISH)) == "train-a · 1,024 GPUs"


def test_silent_gpus_are_said() -> None:
    partly = cluster.status(
        clusters=(ClusterInfo(name="a", nodes=2, gpus=16, gpus_reporting=8),), simulated=False
    )

    assert words(frame.chips(partly, ENGLISH)[0]) == "a · 8 of 16 GPUs report"


@pytest.mark.parametrize(("page", "item"), ALL, ids=NAMES)
def test_the_frame_fits_around_every_page(page: Page, item: str) -> None:
    around = frame.frame(cluster.status(), PAGES, page, CHINESE)

    assert set(around) == set(frame.PARTS)
    assert around["facts"]["title"].startswith("flopwatch · ")


def test_with_several_clusters_the_choice_names_the_one_that_is_shown() -> None:
    two = tuple(ClusterInfo(name=name, nodes=1, gpus=8, gpus_reporting=8) for name in ("a", "b"))
    frame_of_two = cluster.status(clusters=two, simulated=False, price_is_example=False)

    assert words(frame.chips(frame_of_two, ENGLISH)) == "16 GPUs"
    assert words(frame.chips(frame_of_two, View(cluster="b"))) == "8 GPUs"
    assert frame.frame(frame_of_two, PAGES, fleet.PAGE, ENGLISH)["clusters"] == ["a", "b"]
    assert frame.frame(frame_of_two, PAGES, fleet.PAGE, ENGLISH)["clusters-class"] == "cluster"


def test_the_live_mark_shows_the_time_of_the_data() -> None:
    assert frame.live(cluster.status(), ENGLISH) == "Live · 15:11:56 UTC"
    assert frame.live(cluster.status(data_time_seconds=None), ENGLISH) == "No data yet"


def test_history_that_is_being_filled_in_shows_its_progress() -> None:
    assert "40%" in words(frame.notice(cluster.status(history_progress_ratio=0.4), ENGLISH))
    assert frame.notice(cluster.status(), ENGLISH) == []


def test_navigation_has_the_pages_that_exist_and_marks_the_current_one() -> None:
    links = frame.navigation(PAGES, job.PAGE, ENGLISH)

    assert [words(link).strip() for link in links] == ["Fleet", "Jobs", "Nodes", "Breakeven", "Alerts"]
    assert [getattr(link, "aria-current", None) for link in links] == [None, "page", None, None, None]


def test_a_job_row_says_target_basis_and_observed_gpus() -> None:
    rows = jobs.PAGE.render(cluster.ClusterQuery(), ENGLISH, "")["rows"]
    llama, waiting = rows[1], rows[8]

    assert llama["gpus_text"] == "200 of 256"
    assert llama["basis"] == "shape · causal"
    assert (llama["target_text"], llama["short"]) == ("42%", True)
    assert (waiting["mfu"], waiting["target_text"], waiting["state"]) == (
        None,
        "no target set",
        "waiting for steps",
    )


def test_a_row_s_trend_is_short_and_ends_with_the_newest_value() -> None:
    query = cluster.ClusterQuery()
    query.rows = (cluster.job_row(1, trend=(*([0.25] * 45), None, 0.5, 0.3333333)),)

    trend = jobs.PAGE.render(query, ENGLISH, "")["rows"][0]["trend"]

    assert len(trend) == 2 * 24
    assert trend == "6y" * 22 + ".." + "99"  # 250 = 6 * 36 + 34, 333 = 9 * 36 + 9


def test_every_row_has_a_string_id() -> None:
    rows = jobs.PAGE.render(cluster.ClusterQuery(), ENGLISH, "")["rows"]

    assert all(isinstance(row["id"], str) for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)


def test_the_table_has_a_cost_column_only_with_a_price() -> None:
    query = cluster.ClusterQuery()
    priced = [column["field"] for column in jobs.PAGE.render(query, ENGLISH, "")["columns"]]
    query.frame = cluster.status(price_per_gpu_hour=None)
    free = [column["field"] for column in jobs.PAGE.render(query, ENGLISH, "")["columns"]]

    assert [field for field in priced if field not in free] == ["money"]


def test_no_jobs_says_what_to_do_next() -> None:
    query = cluster.ClusterQuery()
    query.rows = ()

    assert "flopwatch doctor" in words(jobs.PAGE.render(query, ENGLISH, "")["empty"])


def test_the_arithmetic_of_an_mfu_has_its_numbers_filled_in() -> None:
    shape = words(job.PAGE.render(cluster.ClusterQuery(), ENGLISH, "train-a-1001")["shape"])

    # tokens/s = 0.312 x 256 x 989.4e12 / 4.36e11 = 181,251
    assert "4.36e+11 × 1.813e+05 ÷ (256 × 9.894e+14) = 31.20%" in shape  # noqa: RUF001 - signs
    assert "world size of the trainer" in shape
    assert "33.1% by the PaLM convention" in shape


def test_a_job_that_waits_for_steps_says_what_to_do() -> None:
    parts = job.PAGE.render(cluster.ClusterQuery(), ENGLISH, "train-a-1008")

    assert "flopwatch doctor" in words(parts["waiting"])
    assert "n/a" in words(parts["tiles"][0])


def test_a_job_that_is_not_there_leads_back_to_the_list() -> None:
    parts = job.PAGE.render(cluster.ClusterQuery(), ENGLISH, "gone/../x")

    assert "There is no job gone/../x." in words(parts["gone"])
    assert parts["body"] == "hidden"


def test_a_node_that_does_not_report_says_so() -> None:
    table = words(job.PAGE.render(cluster.ClusterQuery(), ENGLISH, "train-a-1001")["nodes"])

    assert "CAP_SYS_PTRACE missing" in table
    assert "gpu-n105 8 86.0%" in " ".join(table.split())


def test_alerts_stand_in_two_tables_with_state_and_age() -> None:
    parts = alerts.PAGE.render(cluster.ClusterQuery(), ENGLISH, "")

    assert "firing · no fresh data" in words(parts["active"])
    assert "recovered" in words(parts["history"])


def test_addresses_lead_to_their_pages() -> None:
    def found(path: str) -> tuple[str, str] | None:
        hit = match(PAGES, path)
        return hit and (hit[0].name, hit[1])

    assert found("") == ("fleet", "")
    assert found("jobs") == found("jobs/") == ("jobs", "")
    assert found("jobs/a/b") == ("job", "a/b")
    assert found("nonsense") is None


class OneJob(cluster.ClusterQuery):
    """The cluster whose one job answer has some fields replaced."""

    def __init__(self, figure: dict[str, Any] | None = None, **changes: Any) -> None:
        super().__init__()
        self.figure, self.changes = figure or {}, changes

    def job(self, job_id: str, asked: Range) -> Job | None:
        found = super().job(job_id, asked)
        assert found is not None
        row = dataclasses.replace(found.row, mfu=dataclasses.replace(found.row.mfu, **self.figure))
        return dataclasses.replace(found, **{"row": row, **self.changes})


def test_beside_the_figure_stands_what_is_reachable_and_what_was_published() -> None:
    shown = {
        view.lang: words(job.PAGE.render(OneJob(), view, "train-a-1001")["standing"])
        for view in (ENGLISH, CHINESE)
    }

    assert "only 78% to 87% of a GPU's dense peak" in shown["en"]
    assert (
        "dense models of 20 to 100 billion parameters on H100 SXM in bf16 reached 34% to 56% (27 runs)"
        in shown["en"]
    )
    assert "in the lower half of that range" in shown["en"]
    assert "it says nothing of MFU" in shown["en"]
    assert "78% 到 87%" in shown["zh"]
    assert "H100 SXM 上以 bf16 训练200 亿到 1000 亿参数的稠密模型的公开结果为 34% 到 56%" in shown["zh"]
    assert "不能说明 MFU" in shown["zh"]


def test_without_a_figure_nothing_is_said_of_its_standing() -> None:
    assert job.PAGE.render(OneJob(standing=None), ENGLISH, "train-a-1001")["standing"] == []


def test_a_doubt_is_a_sentence_with_the_factor_that_explains_it_in_both_languages() -> None:
    doubt = FindingInfo(
        code="mfu_differs",
        text="as the collector says it",
        values={"factor": 0.5, "explained_by": [[{"code": "sparse_peak", "factor": 0.5, "subject": ""}]]},
    )
    query = OneJob(findings=(doubt,))

    english = words(job.PAGE.render(query, ENGLISH, "train-a-1001")["findings"])
    chinese = words(job.PAGE.render(query, CHINESE, "train-a-1001")["findings"])

    assert "The trainer prints 0.5 times this MFU: the sparse peak taken as dense (2×)" in english  # noqa: RUF001
    assert "训练框架打印的 MFU 为此处的 0.5 倍：把稀疏峰值当作稠密峰值（2×）" in chinese  # noqa: RUF001


def test_an_estimate_is_named_so_and_its_arithmetic_is_that_of_counters() -> None:
    estimate = {
        "value_ratio": 0.4791, "basis": "hardware", "convention": "hardware", "reason": "no_steps", "palm_ratio": None,
        "clock_basis": "max_clock", "tensor_active_ratio": 0.5, "sm_clock_hertz": 1.755e9, "clock_hertz": 1.83e9,
    }  # fmt: skip
    parts = job.PAGE.render(OneJob(estimate), ENGLISH, "train-a-1001")
    shown = words(parts["shape"])

    assert "Hardware estimate, no MFU ≈ 47.9" in " ".join(words(parts["tiles"]).split())
    assert "50.0% × 1.755 GHz ÷ 1.830 GHz = ≈ 47.9%" in shown  # noqa: RUF001 - signs
    assert "lower bound" in shown


def test_what_was_found_of_a_run_is_shown_with_its_source() -> None:
    query = OneJob(
        found=(
            FoundFact(name="world_size", value=1024, source="log", origin="Megatron argument block"),
            FoundFact(name="shape", value=None, source="file", origin="config.json"),
        )
    )

    english = words(job.PAGE.render(query, ENGLISH, "train-a-1001")["shape"])
    chinese = words(job.PAGE.render(query, CHINESE, "train-a-1001")["shape"])

    assert "World size 1,024 · log · Megatron argument block" in english
    assert "Shape · file · config.json" in english
    assert "world size 1,024 · 日志 · Megatron argument block" in chinese


def test_the_arithmetic_shows_the_numbers_of_every_factor() -> None:
    changed = {
        "tokens": 65_536_000.0, "padded_tokens": 70_000_000.0, "gpus_mean": 384.0, "left_out": ("vision",),
        "run_dtype": "fp8", "run_dtype_ratio": 0.2, "dtype_basis": "assumed",
    }  # fmt: skip
    shown = words(job.PAGE.render(OneJob(changed), ENGLISH, "train-a-1001")["shape"])

    assert "÷ (384 ×" in shown  # noqa: RUF001 - signs
    for line in (
        "65,536,000 trained tokens in 50 steps", "70,000,000 with padding", "384.0 on average", "vision tower",
        "20.0% against the dense fp8 peak", "bf16 · assumed", "by the PaLM convention", "NVIDIA H100 data sheet, dense",
    ):  # fmt: skip
        assert line in shown


def test_palm_s_figure_stands_beside_the_default_without_a_click() -> None:
    head = words(job.PAGE.render(OneJob({"palm_ratio": 0.331}), ENGLISH, "train-a-1001")["mfu-head"])

    assert "causal · PaLM 33.1%" in head


def test_the_terms_of_the_arithmetic_speak_the_reader_s_language() -> None:
    figure = {"run_dtype": "fp8", "run_dtype_ratio": 0.2}
    terms = (
        Term(symbol="F", meaning="as the collector says it", value=4.36e11, unit="FLOP"),
        Term(symbol="G", meaning="as the collector says it", value=512, unit=""),
        Term(symbol="P_fp8", meaning="as the collector says it", value=1978.9e12, unit="FLOP/s"),
        Term(symbol="Z", meaning="of a newer collector", value=1, unit=""),
    )
    chinese = words(job.PAGE.render(OneJob(figure, arithmetic=terms), CHINESE, "train-a-1001")["shape"])

    assert "每 token FLOPs，causal" in chinese  # noqa: RUF001 - Chinese punctuation
    assert "卡数（训练框架的 world size）" in chinese  # noqa: RUF001 - Chinese punctuation
    assert "稠密峰值，fp8" in chinese  # noqa: RUF001 - Chinese punctuation
    assert "of a newer collector" in chinese


@pytest.mark.parametrize("view", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_a_line_that_is_never_reached_is_not_shown_as_a_percentage(view: View) -> None:
    never = dataclasses.replace(
        cluster.verdict(), never=True, line_ratio=1.0, line_source="costs", cost_at_line=None
    )

    parts = fleet.PAGE.render(Changed(verdict=never), view, "")
    text = words([parts["verdict"], parts["tiles"]])

    assert view.t("verdict.never") in text
    assert view.t("verdict.a_line_never") in text
    assert view.t("tile.line", line=view.t("verdict.no_line")) in text
