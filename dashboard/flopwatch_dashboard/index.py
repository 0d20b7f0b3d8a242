"""The page shell: style tokens, the script that sets the theme before the first paint, the security policy."""

import base64
import hashlib
import html
import json
from collections.abc import Sequence

from flopwatch_dashboard.theme import style_sheet

FIRST_PAINT = (
    "(function(){var q=new URLSearchParams(location.search),d=document.documentElement,s=function(k){try{return"
    " localStorage.getItem('flopwatch.'+k)}catch(e){return null}},t=q.get('theme')||s('theme')||"
    "(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');t=t==='dark'?'dark':'light';"
    "d.dataset.theme=t;d.dataset.mantineColorScheme=t;if(q.get('kiosk')==='1')d.dataset.kiosk='1';"
    "d.lang=(q.get('lang')||s('lang')||navigator.language||'en').slice(0,2)==='zh'?'zh-CN':'en'})()"
)


def index_string(prefix: str, frame_parts: Sequence[str]) -> str:
    """The HTML around the application, with Dash's own placeholders; it tells the browser the frame's parts."""
    frame = html.escape(json.dumps(list(frame_parts)))
    return (
        f'<!DOCTYPE html><html lang="en" data-prefix="{html.escape(prefix)}" data-frame="{frame}"><head>{{%metas%}}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{{%title%}}</title>{{%favicon%}}{{%css%}}<style>{style_sheet()}</style>"
        f"<script>{FIRST_PAINT}</script></head>"
        "<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body></html>"
    )


def policy(script_hashes: Sequence[str]) -> str:
    """The content security policy: nothing from another host, no script but ours.

    Charts and tables set styles on their elements, so styles may be inline.
    """
    digest = base64.b64encode(hashlib.sha256(FIRST_PAINT.encode()).digest()).decode()
    scripts = " ".join(("'self'", f"'sha256-{digest}'", *script_hashes))
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "connect-src 'self'; worker-src 'self'; font-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "frame-ancestors 'self'; form-action 'self'"
    )
