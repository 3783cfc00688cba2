"""Hints about the platform of a conversation: markup, length, and whether a person can answer questions."""

from collections.abc import Mapping
from typing import Any

_PLAIN = "Markdown is not rendered there: write plain text."
_SHORT = "Keep messages short."
_BASIC = "Bold, italics, code and quotes are rendered; headings and tables are not."
_CHAT = "Write as in a chat: short paragraphs, no headings."
_WHATSAPP = f"You are in a WhatsApp chat. *Bold*, _italics_ and ```code``` are rendered, nothing else. {_SHORT}"

HINTS: Mapping[str, str] = {
    "cli": "You are in a terminal. Markdown is shown as it is typed: write plain text that reads well there.",
    "tui": "You are in a terminal interface that renders simple Markdown.",
    "desktop": "You are in a desktop application that renders Markdown.",
    "webui": "You are in a web page that renders Markdown, tables and code blocks included.",
    "api_server": "You are called by a program over an API; it decides how your answer is shown. Markdown is fine.",
    "telegram": f"You are in a Telegram chat. {_BASIC} {_SHORT}",
    "discord": "You are in a Discord channel. Its Markdown is rendered, tables are not; 2,000 characters a message.",
    "slack": "You are in Slack. Its own markup is rendered (*bold*, _italics_, `code`); headings and tables are not.",
    "mattermost": "You are in Mattermost, which renders Markdown, tables included.",
    "matrix": "You are in a Matrix room; most clients render Markdown.",
    "whatsapp": _WHATSAPP,
    "whatsapp_cloud": _WHATSAPP,
    "signal": f"You are in a Signal chat. {_PLAIN} {_SHORT}",
    "sms": f"You answer by text message. {_PLAIN} Use one or two sentences; every 160 characters cost.",
    "bluebubbles": f"You are in an iMessage chat. {_PLAIN} {_SHORT}",
    "email": "You answer by e-mail. Write a complete message in plain text; the reader cannot ask back at once.",
    "feishu": f"You are in Feishu (Lark). {_BASIC}",
    "weixin": f"You are in a WeChat conversation. {_PLAIN} {_CHAT}",
    "wecom": f"You are in WeCom. {_BASIC} {_SHORT}",
    "qqbot": f"You are in a QQ chat. {_PLAIN} {_CHAT}",
    "yuanbao": f"You are in Yuanbao. {_CHAT}",
    "cron": "You were started by a schedule and no person is there to answer questions. Do the task to its end, decide "
    "what must be decided, and report the outcome in your last message.",
}


def hint_for(platform: str, overrides: Mapping[str, Any] | None = None) -> str:
    """The hint for a platform, as the settings change it; "" for an unknown platform.

    A text in the settings is appended; a mapping may contain `replace` and `append`. Anything else has no effect.
    """
    hint = HINTS.get(platform, "")
    override = (overrides or {}).get(platform)
    if isinstance(override, str):
        return _append(hint, override)
    if isinstance(override, Mapping):
        replacement, addition = override.get("replace"), override.get("append")
        hint = replacement.strip() if isinstance(replacement, str) else hint
        return _append(hint, addition) if isinstance(addition, str) else hint
    return hint


def _append(hint: str, addition: str) -> str:
    return f"{hint} {addition.strip()}".strip()
