# ruff: noqa: RUF001 (Chinese punctuation is what this table is for)
"""Chinese texts about what a source of data cannot answer."""

SOURCE_TEXTS: dict[str, str] = {
    "unavailable.title": "此数据源无法提供，故留空：{what}",
    "unavailable.steps": "训练 step",
    "unavailable.mfu": "MFU（作业以硬件估计代替）",
    "unavailable.ledger": "卡时去向、浪费与计费利用率",
    "unavailable.money": "金额",
    "unavailable.verdict": "结论",
    "unavailable.alert_history": "历史告警",
    "unavailable.tensor_activity": "Tensor Core 活跃率（采集器未开启 profiling 指标）",
    "unavailable.gpus": "GPU（未发现已知的采集器）",
    "series.hardware": "硬件估计",
}
