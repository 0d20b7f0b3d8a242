# ruff: noqa: E501, RUF001 (a page's style and texts are lines as long as they are, Chinese ones with their own signs)
"""The sign-in page: one document without a script, in both languages, light and dark."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs, urlencode, urlsplit

Language = Literal["en", "zh"]
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
TEXTS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "title": "Sign in", "lead": "What the GPUs of this cluster really achieve.", "token": "Access token",
        "hint": "An administrator makes one with", "button": "Sign in", "or": "or", "other": "中文",
        "provider": "Sign in with {name}", "simulated": "SIMULATED", "ended": "You have signed out.",
        "problem.unauthorized": "This token is not known, or it was revoked.",
        "problem.forbidden": "This token may not look at the pages: its role is for agents.",
        "problem.missing": "Enter an access token.",
        "problem.too_many_requests": "Too many attempts. Try again in {seconds} s.",
        "problem.provider": "The identity provider did not sign you in: {why}",
        "problem.groups": "You are signed in at the identity provider, but in no group that may look at flopwatch.",
        "problem.foreign": "The form came from another address than this page's. Open the page anew.",
    },
    "zh": {
        "title": "登录", "lead": "看清集群 GPU 的真实产出。", "token": "访问令牌",
        "hint": "由管理员创建：", "button": "登录", "or": "或", "other": "English",
        "provider": "使用 {name} 登录", "simulated": "模拟数据", "ended": "已退出登录。",
        "problem.unauthorized": "令牌不存在或已被吊销。",
        "problem.forbidden": "该令牌的角色仅供采集代理使用，不能查看页面。",
        "problem.missing": "请输入访问令牌。",
        "problem.too_many_requests": "尝试次数过多，请在 {seconds} 秒后重试。",
        "problem.provider": "身份提供方未能完成登录：{why}",
        "problem.groups": "您已通过身份提供方的认证，但不在任何可查看 flopwatch 的组中。",
        "problem.foreign": "表单来自其他地址，请重新打开本页。",
    },
}  # fmt: skip
_LIGHT = "--bg:#f3f5f8;--card:#fff;--line:#e1e6ec;--text:#17202b;--muted:#566273;--brand:#0b6fb8;--on:#fff;--bad:#b42318;--badbg:#fdecea;--good:#0b6fb8;--goodbg:#e8f2fb;--track:#e9edf2;--warn:#9a5b00;--warnbg:#fff4e0;color-scheme:light"
_DARK = "--bg:#0c1117;--card:#151b23;--line:#252e3a;--text:#e7ecf3;--muted:#9aa7b8;--brand:#4aa8e8;--on:#0c1117;--bad:#ff8a7a;--badbg:#331713;--good:#6cb8f0;--goodbg:#10263a;--track:#252e3a;--warn:#f5b84c;--warnbg:#30240e;color-scheme:dark"
_STYLE = (
    f":root{{{_LIGHT}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}}}}}"
    f":root[data-theme=dark]{{{_DARK}}}"
    """
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;flex-direction:column;background:var(--bg);color:var(--text);font:15px/1.4 Inter,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
header{display:flex;align-items:center;gap:.6rem;padding:0 1.2rem;height:3.4rem;background:var(--card);border-bottom:1px solid var(--line)}
header b{font-size:1.1rem}header a{margin-left:auto}
.logo{width:1.35rem;height:1.35rem;border-radius:.35rem;background:conic-gradient(from 220deg,var(--brand) 0 62%,var(--track) 0)}
main{flex:1;display:grid;place-items:center;padding:1.2rem}
.card{width:100%;max-width:25rem;background:var(--card);border:1px solid var(--line);border-radius:.7rem;padding:1.6rem 1.7rem 1.4rem}
h1{font-size:1.35rem;margin:0 0 .2rem}
.lead,.hint,.or{color:var(--muted)}.lead{margin:0 0 1.2rem}
label{display:block;font-weight:550;margin:0 0 .3rem}
input[type=password]{width:100%;height:2.5rem;padding:0 .7rem;border:1px solid var(--line);border-radius:.5rem;background:var(--bg);color:var(--text);font:inherit}
input.bad{border-color:var(--bad)}
.btn{display:flex;width:100%;height:2.5rem;align-items:center;justify-content:center;margin-top:.8rem;border-radius:.5rem;border:1px solid var(--line);background:var(--card);color:var(--text);font:inherit;font-weight:550;text-decoration:none;cursor:pointer}
.btn.main{background:var(--brand);border-color:var(--brand);color:var(--on)}
.lang{color:var(--text);text-decoration:none;border:1px solid var(--line);border-radius:.5rem;padding:.3rem .7rem;font-size:.93rem}
:focus-visible{outline:2px solid var(--brand);outline-offset:2px;border-radius:6px}
.told{border-radius:.5rem;padding:.5rem .75rem;margin:0 0 1rem;background:var(--goodbg);color:var(--good)}
.told.problem{background:var(--badbg);color:var(--bad)}
.chip{font-size:.82rem;font-weight:650;color:var(--warn);background:var(--warnbg);border-radius:99px;padding:.1rem .6rem}
.or{display:flex;align-items:center;gap:.7rem;margin-top:1rem}.or:before,.or:after{content:"";flex:1;border-top:1px solid var(--line)}
.hint{font-size:.88rem;margin:1.1rem 0 0}
code{display:block;margin-top:.3rem;font:.86rem ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--track);border-radius:.3rem;padding:.3rem .5rem;overflow-wrap:anywhere;color:var(--text)}
code span{white-space:nowrap}
"""
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """How the page is to look, and where it leads."""

    language: Language = "en"
    theme: Literal["light", "dark"] | None = None
    """None: the system's."""
    to: str = "/ui/"
    simulated: bool = False
    provider: str | None = None
    """Name of the identity provider, where there is one."""


def asked_of(query: Mapping[str, str], accept_language: str, *, to: str, home: str) -> Asked:
    """Language and theme as the page that was wanted had them, else as the browser says."""
    target = local_path(to, home)
    wanted = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    told = query.get("lang") or wanted.get("lang") or accept_language
    theme = query.get("theme") or wanted.get("theme")
    return Asked(
        language="zh" if told.strip().lower().startswith("zh") else "en",
        theme="dark" if theme == "dark" else "light" if theme == "light" else None,
        to=target,
    )


def local_path(to: str, home: str) -> str:
    """Where to go after: only to a path of this server."""
    local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() and "\\" not in to
    return to if local else home


def page(asked: Asked, problem: str = "", note: str = "") -> str:
    """The document; ``problem`` and ``note`` are in the reader's language."""
    words = TEXTS[asked.language]
    theme = f' data-theme="{asked.theme}"' if asked.theme else ""
    told = f'<p class="told problem" role="alert">{html.escape(problem)}</p>' if problem else ""
    told += f'<p class="told" role="status">{html.escape(note)}</p>' if note else ""
    chip = f'<span class="chip">{words["simulated"]}</span>' if asked.simulated else ""
    return (
        f'<!doctype html><html lang="{"zh-CN" if asked.language == "zh" else "en"}"{theme}><head><meta charset="utf-8">'
        f"<title>flopwatch · {words['title']}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head><body>"
        f'<header><span class="logo"></span><b>flopwatch</b>{chip}'
        f'<a class="lang" href="{_other(asked)}">{words["other"]}</a></header>'
        f'<main><div class="card"><h1>{words["title"]}</h1><p class="lead">{words["lead"]}</p>{told}'
        f"{_form(asked, words, wrong=bool(problem))}{_provider(asked, words)}"
        f'<p class="hint">{words["hint"]}<code>flopwatch token create <span>--role viewer</span> <span>--name NAME</span></code></p>'
        "</div></main></body></html>"
    )


def _form(asked: Asked, words: Mapping[str, str], *, wrong: bool) -> str:
    hidden = {"next": asked.to, "lang": asked.language, "theme": asked.theme or ""}
    fields = "".join(
        f'<input type="hidden" name="{name}" value="{html.escape(value, quote=True)}">'
        for name, value in hidden.items()
    )
    mark = ' class="bad" aria-invalid="true"' if wrong else ""
    return (
        f'<form method="post" action="/login"><label for="token">{words["token"]}</label>'
        '<input name="username" autocomplete="username" value="flopwatch" hidden>'
        f'<input id="token" name="token" type="password" autocomplete="current-password" required autofocus{mark}>'
        f'{fields}<button class="btn main">{words["button"]}</button></form>'
    )


def _provider(asked: Asked, words: Mapping[str, str]) -> str:
    if asked.provider is None:
        return ""
    name = html.escape(words["provider"].format(name=asked.provider))
    address = html.escape(f"/login/oidc?{urlencode({'next': asked.to})}", quote=True)
    return f'<div class="or">{words["or"]}</div><a class="btn" id="provider" href="{address}">{name}</a>'


def _other(asked: Asked) -> str:
    """The address of the same page in the other language."""
    values = {"next": asked.to, "lang": "en" if asked.language == "zh" else "zh"}
    if asked.theme:
        values["theme"] = asked.theme
    return html.escape(f"/login?{urlencode(values)}", quote=True)
