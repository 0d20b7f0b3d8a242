# ruff: noqa: RUF001, E501 (typographic signs and whole sentences are what this table is for)
"""Chinese texts of a team's ledger on the Fleet page."""

TEAM_TEXTS: dict[str, str] = {
    "team.verdict": "结论针对整个集群：自有与否按集群而非团队决定。以下为团队 {team} 的数值；时间范围内无人占用的 {hours} GPU 时不属于任何团队。",
    "team.no_ledger": "此处没有团队 {team} 的账目：以下数值为整个集群的，仅作业和告警属于该团队。",
    "team.daily": "{team} 所占 GPU 的每日利用率",
    "team.fall": "{team} 的 GPU 时去向",
    "team.fall_sub": "{range} · 小时 · 占团队所占时间的百分比",
    "team.activity_sub": "整个集群",
    "team.given": "团队获得的 GPU 时，{range}",
    "team.given_hint": "时间范围内团队租约占用的 GPU 时，与按团队的报告相同。利用率：（占用 − 空占 − 闲置占用 − 未知）÷ 占用。",
    "team.used": "已利用 {ratio}",
    "team.mfu": "团队 MFU，{range}",
    "team.mfu_hint": "时间范围内保留的 FLOPs ÷（团队已接入作业的租用秒数 × 峰值）；不含硬件估算。",
    "team.covers": "覆盖 {coverage}",
    "team.waste": "浪费，{range}",
    "team.waste_hint": "时间范围内团队租约的闲置占用 + 停滞 + 作业内损失。",
    "team.money": "浪费成本，{range}",
    "team.money_hint": "浪费的 GPU 时的价格，以及团队租约全部 GPU 时的成本。",
    "team.billed": "占用共 {amount}",
    "team.credit": "平台 {amount}",
}
