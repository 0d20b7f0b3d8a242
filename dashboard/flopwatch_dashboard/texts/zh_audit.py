# ruff: noqa: RUF001 (Chinese punctuation)
"""Chinese texts of the page that says who changed what."""

AUDIT_TEXTS: dict[str, str] = {
    "audit.title": "操作记录",
    "audit.lines": "修改与登录",
    "audit.sub": "最新在前 · 含被拒绝的登录 · {range} · 保留一年",
    "audit.by": "操作人",
    "audit.by_hint": "姓名或地址",
    "audit.what": "操作",
    "audit.what_hint": "登录，或英文如 costs",
    "audit.col.when": "时间",
    "audit.col.by": "操作人",
    "audit.col.from": "来源",
    "audit.col.what": "操作",
    "audit.col.content": "内容",
    "audit.action.signed in": "登录",
    "audit.action.signed out": "退出登录",
    "audit.action.sign-in refused": "登录被拒绝",
    "audit.none": "该时间范围内没有此类操作。",
    "audit.more": "另有 {n} 条更早的记录符合条件：请缩小时间范围或筛选条件。",
    "audit.failed": "采集服务拒绝了查询：{message}",
    "audit.lost": "服务器没有响应。",
}
