"""English texts about what a source of data cannot answer."""

SOURCE_TEXTS: dict[str, str] = {
    "unavailable.title": "Not available from this source, so left empty: {what}",
    "unavailable.steps": "training steps",
    "unavailable.mfu": "MFU (the hardware estimate stands in for jobs)",
    "unavailable.ledger": "where GPU time went, waste and utilisation by lease",
    "unavailable.money": "money",
    "unavailable.verdict": "the verdict",
    "unavailable.alert_history": "past alerts",
    "unavailable.tensor_activity": "tensor activity (the exporter's profiling metrics are off)",
    "unavailable.gpus": "GPUs (no known exporter is scraped)",
    "series.hardware": "Hardware est.",
}
