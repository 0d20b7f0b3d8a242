import ast
import re
import typing
from pathlib import Path
from string import Formatter

import pytest

import flopwatch_dashboard
from flopwatch import query, wire
from flopwatch.accelerators import by_name
from flopwatch.answers import diagnosis
from flopwatch.mfu_hypotheses import BUGS, CONVENTION_TEXTS, hypotheses
from flopwatch.mfu_standing import CLASS_TEXTS, Place
from flopwatch_dashboard.text import TABLES, t
from flopwatch_dashboard.texts import en, zh

ROOM = Path(flopwatch_dashboard.__file__).parent
CAUSES = (
    "hang", "held_idle", "held_empty", "data_wait", "checkpoint", "startup", "recovery", "lost", "straggler", "gap",
    "throttle", "mfu_below_target", "no_steps", "unknown_gpu", "generic",
)  # fmt: skip
RULES = (
    "MfuLow", "JobHang", "Straggler", "IdleHeld", "NodeDown", "NoData", "HighUtilLowMfu", "BelowBreakeven",
    "MfuDrop", "MfuBelowNorm", "StepSpikes", "HangSuspect", "RestartStorm", "NoProgress", "CkptSlow", "HwThrottle",
    "ThermalThrottle", "GpuLost", "GpuErrors", "LinkDegraded", "LemonNode", "AgentUnhealthy", "BudgetBurn",
)  # fmt: skip
EXPLANATIONS = {
    *CONVENTION_TEXTS, *(code for code, _, _ in BUGS),
    *(guess.code for guess in hypotheses(None, accelerator=by_name("NVIDIA B200"), tokens=1.0, padded_tokens=2.0)),
    *(guess.code for guess in hypotheses(None, accelerator=by_name("NVIDIA H100 NVL"), dtype="tf32")),
}  # fmt: skip
DOUBTS = ("above_peak", "above_tensor_activity", "peak_differs", "flops_differ", "mfu_differs")
REASONS = (
    "waiting", "no_steps", "no_step_time", "no_shape", "no_sequence_length", "no_encoder_tokens", "no_tokens",
    "unknown_gpu", "no_peak_for_dtype",
)  # fmt: skip
BUCKETS = (
    "MAINT", "FAULT", "UNKNOWN", "SPARE", "FREE", "HELD_EMPTY", "HELD_IDLE", "BUSY_OPAQUE", "STARTUP", "RECOVERY",
    "CKPT", "EVAL", "DATA_WAIT", "HANG", "GAP", "LOST", "STEP",
)  # fmt: skip


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys() -> None:
    assert set(en.TEXTS) == set(zh.TEXTS)


def test_both_languages_have_the_same_placeholders() -> None:
    different = [key for key, text in en.TEXTS.items() if placeholders(text) != placeholders(zh.TEXTS[key])]

    assert different == []


def test_no_text_is_empty() -> None:
    assert [key for table in TABLES.values() for key, text in table.items() if not text.strip()] == []


def test_every_key_that_the_code_names_has_a_text() -> None:
    named = {
        node.args[0].value
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "t"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }

    assert len(named) > 100
    assert named - set(en.TEXTS) == set()


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("class", query.LEDGER_CLASSES),
        ("job_state", typing.get_args(query.JobState)),
        ("alert_state", typing.get_args(query.AlertState)),
        ("severity", typing.get_args(query.Severity)),
        ("verdict", typing.get_args(query.VerdictCode)),
        ("basis", typing.get_args(query.Basis)),
        ("basis_short", typing.get_args(query.Basis)),
        ("basis_hint", typing.get_args(query.Basis)),
        ("gpus_basis", typing.get_args(query.GpusBasis)),
        ("target", typing.get_args(typing.get_type_hints(query.Target)["source"])),
        ("reason", REASONS),
        ("bucket", BUCKETS),
        ("cause", CAUSES),
        ("alert", RULES),
        ("finding", DOUBTS),
        ("explanation", tuple(sorted(EXPLANATIONS))),
        ("model_class", tuple(CLASS_TEXTS)),
        ("place", typing.get_args(Place)),
        ("dtype_basis", typing.get_args(wire.DtypeBasis)),
        ("diagnosis", typing.get_args(diagnosis.DiagnosisCode)),
        ("next", typing.get_args(diagnosis.DiagnosisCode)),
        ("confidence", typing.get_args(diagnosis.Confidence)),
    ],
)
def test_every_code_of_the_contract_has_a_text(table: str, codes: tuple[str, ...]) -> None:
    assert [code for code in codes if f"{table}.{code}" not in en.TEXTS] == []


def test_chinese_uses_the_terms_of_the_trade() -> None:
    assert t("zh", "unit.gpu_hours") == "卡时"
    assert t("zh", "frame.gpus", gpus="256") == "256 卡"
    assert t("zh", "series.tensor_active") == "Tensor Core 活跃率"
    assert t("zh", "job_state.stalled") == "训练无进展"
    assert t("zh", "col.basis") == "口径"
    assert t("zh", "frame.simulated") == "模拟数据"
    assert t("zh", "tile.utilisation") == "日均算力利用率（计费口径）"  # noqa: RUF001 - Chinese punctuation


@pytest.mark.parametrize("wrong", ["张 GPU", "忙碌率", "盈亏平衡", "有效卡时", "GPU 小时", "步进"])
def test_chinese_avoids_the_words_that_mislead(wrong: str) -> None:
    assert [key for key, text in zh.TEXTS.items() if wrong in text] == []


def test_english_never_calls_a_billable_hour_useful() -> None:
    assert [key for key, text in en.TEXTS.items() if re.search(r"useful GPU", text)] == []
