"""Parts of the Job page: events, ends of launches, distribution, nodes beside each other, goodput, findings."""

import dataclasses
import json
from typing import Any

import pytest
from plotly.io.json import to_json_plotly
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import FindingInfo, Mark, NodeInfo, Range
from flopwatch_dashboard.components import job_findings, job_goodput, job_head, job_nodes, phrases
from flopwatch_dashboard.event_words import exit_words, mark_words
from flopwatch_dashboard.figures import events, frame, gap, lines, spread, waterfall
from flopwatch_dashboard.pages import job as job_page
from flopwatch_dashboard.view import CUSTOM_RANGE, View

ASKED = Range()
ENGLISH, CHINESE = View(), View(lang="zh")


def words_of(component: Any) -> str:
    return json.dumps(json.loads(to_json_plotly(component)), ensure_ascii=False)


def mark(kind: str, time: float = 100.0, **changes: Any) -> Mark:
    return dataclasses.replace(Mark(time_seconds=time, end_seconds=None, kind=kind, text=""), **changes)


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        ("signal 9", "killed by SIGKILL (9)", "被 SIGKILL (9) 终止"),
        ("exit 1", "exit code 1", "退出码 1"),
        ("exit 0", "completed", "正常完成"),
        ("NODE_FAIL", "node failed", "节点故障"),
        ("out_of_memory", "out of memory", "内存不足"),
        (None, "not told", "未告知"),
        ("moved to another rack", "moved to another rack", "moved to another rack"),
    ],
)
def test_the_end_of_a_launch_is_said_in_the_reader_s_language(
    reason: str | None, english: str, chinese: str
) -> None:
    assert (exit_words(reason, ENGLISH), exit_words(reason, CHINESE)) == (english, chinese)


def test_an_event_says_its_step_and_how_long_it_took() -> None:
    saved = mark("checkpoint", text="step 12000", end_seconds=145.0)

    assert mark_words(saved, ENGLISH) == "step 12,000 · 45 s"
    assert mark_words(mark("restart", text="from step 8180"), CHINESE) == "从第 8,180 步继续"
    assert mark_words(mark("event", text="xid 79: fell off the bus"), CHINESE) == "xid 79: fell off the bus"


def test_restarts_cut_the_curve_and_other_events_only_mark_it() -> None:
    series = cluster.job_series(ASKED, 0.31)
    curve = lines.mfu(series, 0.42, "UTC", ENGLISH)
    found = (mark("restart", cluster.NOW - 500), mark("checkpoint", cluster.NOW - 300, text="step 5"))

    drawn = events.on_curve(curve, found, "UTC", ENGLISH)

    assert len(drawn["layout"]["shapes"]) == len(curve["layout"]["shapes"]) + 1
    assert drawn["data"][-1]["customdata"] == ["restart", "checkpoint: step 5"]
    assert drawn["data"][-1]["marker"]["symbol"] == ["triangle-down", "diamond"]
    assert events.on_curve(curve, (), "UTC", ENGLISH) is curve


def test_of_very_many_events_those_that_cut_the_run_are_drawn_first() -> None:
    saves = [mark("checkpoint", 10.0 * n) for n in range(400)]
    found = [*saves, mark("restart", 5.0)]

    drawn = events.drawn(found)

    assert len(drawn) == 240
    assert drawn[0].kind == "restart"
    assert [one.time_seconds for one in drawn] == sorted(one.time_seconds for one in drawn)


def test_the_distribution_counts_every_record_once_and_says_what_lies_beyond_its_axis() -> None:
    found = spread.spread_of([10.0] * 90 + [11.0] * 9 + [60.0], 11.0)

    assert found is not None
    assert found.records == 100
    assert found.shares[0] == pytest.approx(0.90)
    assert sum(found.shares) == pytest.approx(0.99)
    assert found.beyond_ratio == pytest.approx(0.01)
    assert found.edges[-1] == pytest.approx(11.0 * 1.25)


def test_even_step_times_do_not_look_spread() -> None:
    found = spread.spread_of([14.5] * 50, 14.5)

    assert found is not None
    assert found.edges[-1] - found.edges[0] == pytest.approx(14.5 * 0.02)
    assert max(found.shares) == pytest.approx(1.0)


def test_one_record_is_no_distribution() -> None:
    assert spread.spread_of([14.5, None], None) is None


def node(name: str, **changes: Any) -> NodeInfo:
    usual = NodeInfo(
        node=name,
        gpus=8,
        kernel_active_ratio=0.9,
        tensor_active_ratio=0.5,
        power_watts=600.0,
        sm_clock_hertz=1.75e9,
        reporting=True,
        log_problem=None,
    )
    return dataclasses.replace(usual, **changes)


def test_the_node_that_stands_apart_comes_first_with_how_far_it_is_from_the_median() -> None:
    found = [node("a"), node("b"), node("c", sm_clock_hertz=1.4e9), node("d")]
    middle = job_nodes.medians(found)

    assert job_nodes.ordered(found, middle)[0].node == "c"
    assert job_nodes.apart(found[2], "sm_clock_hertz", middle) == pytest.approx(-0.2)
    assert job_nodes.standing_apart(found, middle) == 1
    job = dataclasses.replace(cluster.job(1, ASKED, cluster.status()), nodes=tuple(found))
    assert job_nodes.summary(job, ENGLISH) == "1 of 4 nodes stand apart"
    assert "▼ -20%" in words_of(job_nodes.nodes(job, ENGLISH))


def test_two_nodes_have_no_middle_and_unknown_figures_stand_nowhere() -> None:
    pair = [node("a"), node("b", sm_clock_hertz=1.0e9)]
    assert job_nodes.standing_apart(pair, job_nodes.medians(pair)) == 0

    silent = [node("a"), node("b"), node("c"), node("d", power_watts=None)]
    assert job_nodes.apart(silent[3], "power_watts", job_nodes.medians(silent)) is None


def test_of_a_thousand_nodes_only_those_that_need_a_look_are_listed() -> None:
    many = tuple(node(f"n{number:04d}") for number in range(1_000))
    job = dataclasses.replace(cluster.job(1, ASKED, cluster.status()), nodes=many)

    told = words_of(job_nodes.nodes(job, ENGLISH))

    assert "936 more nodes" in told
    assert "n0063" in told
    assert "n0064" not in told


def test_goodput_tells_what_interruptions_cost_and_leaves_out_what_would_bring_next_to_nothing() -> None:
    job = cluster.job(1, ASKED, cluster.status())

    told = words_of(job_goodput.goodput(job, ENGLISH))

    assert "86.2%" in told
    assert "at most 87.2%" in told
    assert "detect 60 s · isolate 8 min · resume 60 s" in told
    assert "Saving at the best interval" in told
    assert "Detecting in half the time" not in told
    assert "Not known" in words_of(job_goodput.goodput(dataclasses.replace(job, goodput=None), ENGLISH))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("no_shape", "没有找到模型结构"),
        ("shared_log", "两个作业写同一份日志"),
        ("brand_new", "agent 报告"),
    ],
)
def test_findings_of_agents_are_said_in_chinese_with_their_own_words_behind(code: str, words: str) -> None:
    found = FindingInfo(code=code, text="told by nobody", values={})

    assert job_findings.sentence(found, CHINESE).startswith(words)
    job = dataclasses.replace(cluster.job(1, ASKED, cluster.status()), findings=(found,))
    assert "told by nobody" in words_of(job_findings.findings(job, CHINESE))


def test_time_inside_the_steps_is_explained_as_held_by_the_step_mfu() -> None:
    job = cluster.job(1, ASKED, cluster.status())
    higher = dataclasses.replace(job, row=dataclasses.replace(job.row, wall_mfu_ratio=0.30))

    assert "step MFU above already holds it" in gap.note(higher, ENGLISH)
    assert "does not say where" in gap.note(job, ENGLISH)


def test_the_heading_links_to_the_report_and_to_a_declared_dashboard_only() -> None:
    row = cluster.job_row(1)
    assert "/api/v1/reports/jobs/train-a-1001?format=html&language=zh" in words_of(
        job_head.heading(row, CHINESE)
    )
    assert "Trainer" not in words_of(job_head.heading(row, ENGLISH))

    linked = dataclasses.replace(row, tracker_url="https://wandb.example.com/run-7")
    assert "https://wandb.example.com/run-7" in words_of(job_head.heading(linked, ENGLISH))


def test_a_diagnosis_beside_a_past_range_says_that_it_is_the_present_one() -> None:
    query = cluster.ClusterQuery()
    past = dataclasses.replace(
        ENGLISH, range_name=CUSTOM_RANGE, between=(cluster.NOW - 7_200, cluster.NOW - 3_600)
    )

    now_head = words_of(job_page.render(query, ENGLISH, "train-a-1001")["diagnosis-head"])
    past_head = words_of(job_page.render(query, past, "train-a-1001")["diagnosis-head"])

    assert "as of now, not of the range that is shown" in past_head
    assert "as of now" not in now_head


def test_on_a_phone_the_amounts_of_the_fall_leave_the_money_to_the_note() -> None:
    ledger = cluster.ClusterQuery().fleet(ASKED).ledger_today
    phone = dataclasses.replace(ENGLISH, width=390)

    wide = [one["text"] for one in waterfall.waterfall(ledger, "USD", ENGLISH)["layout"]["annotations"]]
    small = waterfall.waterfall(ledger, "USD", phone)

    assert [text for text in wide if "$" in text] == wide[1:]
    assert [one["text"] for one in small["layout"]["annotations"]] == [text.split(" · $")[0] for text in wide]
    assert all("$" in note for note in small["data"][0]["customdata"][1:])


def test_a_job_that_wastes_nothing_has_no_cause_and_one_that_wastes_for_no_known_reason_an_unknown_one() -> (
    None
):
    wasting = dataclasses.replace(cluster.job_row(0), cause=None)
    clean = dataclasses.replace(wasting, waste_gpu_milliseconds=0)

    assert [phrases.job_cause(row, ENGLISH) for row in (wasting, clean)] == ["n/a", "no waste"]
    assert phrases.job_cause(clean, CHINESE) == "无浪费"


@pytest.mark.parametrize(("count", "apart"), [(1, 1), (7, 1), (8, 2), (30, 7), (90, 14), (366, 56)])
def test_an_axis_of_days_has_ticks_of_whole_days_at_most_seven(count: int, apart: int) -> None:
    days = [f"2026-11-{1 + i % 30:02d}" for i in range(count)]

    axis = frame.day_axis(days, ENGLISH)

    assert axis["dtick"] == apart * 86_400_000
    assert axis["tick0"] == "2026-11-01"
    assert (frame.day_axis(days, CHINESE)["tickformat"], axis["tickformat"]) == ("%-m月%-d日", "%-d %b")
