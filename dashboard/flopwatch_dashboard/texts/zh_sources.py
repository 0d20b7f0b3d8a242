# ruff: noqa: RUF001 (Chinese punctuation is what this table is for)
"""Chinese texts about sources: what one cannot answer, and where facts of a run were found."""

SOURCE_TEXTS: dict[str, str] = {
    "unavailable.title": "此数据源无法提供，故留空：{what}",
    "unavailable.here": "该数据源不提供此信息。",
    "unavailable.steps": "训练 step",
    "unavailable.mfu": "MFU（作业以硬件估计代替）",
    "unavailable.ledger": "卡时去向、浪费与计费利用率",
    "unavailable.money": "金额",
    "unavailable.verdict": "结论",
    "unavailable.alert_history": "历史告警",
    "unavailable.tensor_activity": "Tensor Core 活跃率（采集器未开启 profiling 指标）",
    "unavailable.gpus": "GPU（未发现已知的采集器）",
    "found.trainer": "训练框架",
    "found.shape": "模型结构",
    "found.parameter_count": "参数量",
    "found.world_size": "world size",
    "found.global_batch_size": "全局 batch size",
    "found.sequence_length": "序列长度",
    "found.tokens_per_step": "每 step token 数",
    "found.dtype": "数值格式",
    "found_source.declared": "人工声明",
    "found_source.sdk": "训练脚本",
    "found_source.log": "日志",
    "found_source.file": "文件",
    "series.hardware": "硬件估计",
}
