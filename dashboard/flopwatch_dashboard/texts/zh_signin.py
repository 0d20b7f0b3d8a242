# ruff: noqa: RUF001 (Chinese punctuation)
"""Chinese texts about who has signed in, what they may do, and saving the site's costs."""

SIGNIN_TEXTS: dict[str, str] = {
    "role.viewer": "查看者",
    "role.operator": "运维",
    "role.admin": "管理员",
    "person.teams": "{teams} 的作业",
    "person.leave": "退出登录",
    "read_only.role": "当前角色为{role}。修改需要运维角色，请向管理员申请相应令牌。",
    "read_only.team": "您只能看到 {teams} 的作业。修改需要不限团队的令牌。",
    "read_only.source": "此看板独立运行，不做修改：请打开采集服务的页面进行操作。",
    "desk.failed": "未执行：{message}",
    "alerts.audit": "操作记录",
    "desk.lost": "未执行：服务器没有响应。",
    "costs.save": "保存供所有人使用",
    "costs.save_text": "将 {changes} 项改动保存为站点成本。此后集群总览、报告和告警都使用它，取代配置文件中的成本。",
    "costs.save_why": "原因（留作记录）",
    "costs.saved_by": "成本由 {by} 于 {when} 保存：{comment}",
    "costs.saved_note": "它取代配置文件中的成本。",
    "costs.file_differs": "此后配置文件中的成本有改动。",
    "costs.withdraw": "恢复使用配置文件中的成本",
    "costs.done": "已保存，新成本即刻生效。",
    "costs.withdrawn": "已恢复使用配置文件中的成本。",
}
