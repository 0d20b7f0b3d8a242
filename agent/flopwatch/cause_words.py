# ruff: noqa: RUF001 - Chinese punctuation
"""Likely causes as sentences, in English and Chinese: the same on pages, in reports and in messages. Pure."""

from collections.abc import Mapping
from typing import Final, Literal

from flopwatch.answers.job import Cause

Language = Literal["en", "zh"]
ENGLISH: Final[Mapping[str, str]] = {
    "cause.hang": "No step for {hours} h", "cause.held_idle": "Held idle for {hours} h",
    "cause.held_empty": "Held, no process", "cause.data_wait": "Waits for data",
    "cause.checkpoint": "Blocking checkpoints", "cause.startup": "Long start-up",
    "cause.recovery": "Recovering from a failure", "cause.lost": "Lost steps after restart",
    "cause.straggler": "Straggler on {node}", "cause.gap": "Gaps between steps", "cause.throttle": "Throttled clocks",
    "cause.mfu_below_target": "MFU below target", "cause.no_steps": "No steps read",
    "cause.unknown_gpu": "GPU model unknown", "cause.generic": "No single cause",
    "diagnosis.insufficient_data": "Not enough data to say",
    "diagnosis.hang": "Hang: no step, and the hardware computes nothing",
    "diagnosis.checkpoint_stall": "Blocking checkpoints",
    "diagnosis.periodic_pauses": "Pauses that come back regularly",
    "diagnosis.data_stall": "Waits for its data",
    "diagnosis.throttled": "Throttled clocks: {subject}",
    "diagnosis.power_capped": "At the power limit: normal at full load",
    "diagnosis.straggler_gpu": "One GPU is slower than its peers: {subject}",
    "diagnosis.straggler_node": "One node is slower than its peers: {subject}",
    "diagnosis.straggler_link": "The network of one node is slower: {subject}",
    "diagnosis.one_of_the_nodes": "One of its nodes is slower, not known which",
    "diagnosis.imbalance": "Uneven work, not hardware", "diagnosis.host_pauses": "Pauses of the host on random ranks",
    "diagnosis.communication_bandwidth": "Communication near the line rate",
    "diagnosis.communication_waiting": "Ranks wait for one another", "diagnosis.pipeline_bubble": "Pipeline bubble",
    "diagnosis.launch_bound": "Small kernels: the host cannot launch fast enough",
    "diagnosis.memory_bandwidth": "Bound by memory bandwidth",
    "diagnosis.under_filled": "GPUs not filled: room for a larger batch",
    "diagnosis.uneven_gpus": "GPUs of one node are unevenly busy",
    "diagnosis.recompute": "Recompute: work done twice",
    "diagnosis.wrong_peak": "Impossible MFU: formula, format or peak is wrong",
    "diagnosis.step_time_rose": "Steps take longer since a moment",
    "diagnosis.step_time_drifts": "Steps slowly take longer",
    "diagnosis.slower_layout": "Another layout reached more",
    "diagnosis.slower_nodes": "The same layout on other nodes reached more", "diagnosis.healthy": "Healthy",
    "diagnosis.unexplained": "Not explained by what is measured",
}  # fmt: skip
CHINESE: Final[Mapping[str, str]] = {
    "cause.hang": "训练无进展 {hours} 小时",
    "cause.held_idle": "占用空闲 {hours} 小时",
    "cause.held_empty": "占用无进程",
    "cause.data_wait": "等待数据",
    "cause.checkpoint": "检查点阻塞",
    "cause.startup": "启动时间长",
    "cause.recovery": "故障恢复中",
    "cause.lost": "重启后丢失训练步",
    "cause.straggler": "慢节点 {node}",
    "cause.gap": "步间空隙",
    "cause.throttle": "降频",
    "cause.mfu_below_target": "MFU 低于目标", "cause.no_steps": "没有读到训练步", "cause.unknown_gpu": "GPU 型号未知",
    "cause.generic": "没有单一原因",
    "diagnosis.insufficient_data": "数据不足，无法判断",
    "diagnosis.hang": "训练挂起：无进展且硬件无计算",
    "diagnosis.checkpoint_stall": "检查点阻塞训练", "diagnosis.periodic_pauses": "训练周期性停顿",
    "diagnosis.data_stall": "等待数据",
    "diagnosis.throttled": "降频：{subject}",
    "diagnosis.power_capped": "达到功耗上限：满载时属正常", "diagnosis.straggler_gpu": "有一卡慢于同组：{subject}",
    "diagnosis.straggler_node": "有一个节点慢于同组：{subject}",
    "diagnosis.straggler_link": "有一个节点网络偏慢：{subject}",
    "diagnosis.one_of_the_nodes": "其中一个节点偏慢，无法确定是哪一个", "diagnosis.imbalance": "负载不均，并非硬件问题",
    "diagnosis.host_pauses": "主机在随机 rank 上停顿", "diagnosis.communication_bandwidth": "通信接近线速",
    "diagnosis.communication_waiting": "各 rank 相互等待", "diagnosis.pipeline_bubble": "流水线气泡",
    "diagnosis.launch_bound": "kernel 过小：主机下发不及时", "diagnosis.memory_bandwidth": "受显存带宽限制",
    "diagnosis.under_filled": "GPU 未占满：batch size 过小", "diagnosis.uneven_gpus": "同一节点内各卡负载不均",
    "diagnosis.recompute": "重计算：部分计算做了两遍",
    "diagnosis.wrong_peak": "MFU 不可能这么高：公式、数据类型或峰值有误",
    "diagnosis.step_time_rose": "训练步自某一时刻起变慢", "diagnosis.step_time_drifts": "训练步逐渐变慢",
    "diagnosis.slower_layout": "另一种并行布局 MFU 更高", "diagnosis.slower_nodes": "相同布局在其他节点上 MFU 更高",
    "diagnosis.healthy": "正常", "diagnosis.unexplained": "现有测量无法解释",
}  # fmt: skip
TABLES: Final[Mapping[Language, Mapping[str, str]]] = {"en": ENGLISH, "zh": CHINESE}


def key_of(cause: Cause) -> str:
    """The key of its text; an unknown code is *no single cause*."""
    key = f"{'diagnosis' if cause.source == 'diagnosis' else 'cause'}.{cause.code}"
    return key if key in ENGLISH else "cause.generic"


def said(cause: Cause, language: Language) -> str:
    """The sentence that the pages say; what is not known in it is a question mark."""
    values = {
        name: f"{round(value, 1):g}" if isinstance(value, float) else str(value)
        for name, value in _known(cause)
    }
    return TABLES[language][key_of(cause)].format_map(_Unknown(values))


def _known(cause: Cause) -> list[tuple[str, object]]:
    return [(name, value) for name, value in cause.values.items() if value is not None]


class _Unknown(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"
