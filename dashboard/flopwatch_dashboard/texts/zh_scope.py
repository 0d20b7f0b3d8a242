# ruff: noqa: RUF001 (typographic signs and whole sentences are what this table is for)
"""Chinese texts of what pages are narrowed to, of Fleet's days, and of links that save what is shown."""

SCOPE_TEXTS: dict[str, str] = {
    "scope.open": "自定义时间范围、时区、团队、大屏",
    "scope.range": "{range}（{zone}）",
    "scope.team": "团队 {team}：作业、告警和集群总览的账目；其余仍是全部团队的",
    "scope.zone": "时间按 {zone} 显示；站点的日界为 {site}",
    "scope.drop": "取消：{what}",
    "scope.d_title": "页面显示的内容",
    "scope.d_from": "开始",
    "scope.d_to": "结束",
    "scope.d_zone": "时区",
    "scope.d_site": "{zone}（站点）",
    "scope.d_browser": "{zone}（本浏览器）",
    "scope.d_team": "团队",
    "scope.d_all": "全部团队",
    "scope.d_apply": "显示",
    "scope.d_close": "关闭",
    "scope.d_wall": "大屏模式",
    "scope.d_bad": "开始须早于结束，相差至少一分钟、至多一年。",
    "scope.d_hint": "两者留空，则按页头所选的范围显示到现在。",
    "fleet.top_team": "{team} 团队浪费最多的作业，{range}",
    "fleet.day_frozen": "已定稿",
    "fleet.day_revised": "已定稿，第 {revision} 版，最近修改于 {time}",
    "fleet.day_open": "仍可能变化",
    "fleet.day_barely": "不计几乎未用的时间为 {value}",
    "frame.csv_hint": "把这张卡片的数值存为 CSV",
}
