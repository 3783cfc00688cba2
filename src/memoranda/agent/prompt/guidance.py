"""Guidance for the model: what belongs in memory, in the record and in skills, and how to write on a platform.

How a tool is called is in the tool's own description and nowhere else; the guidance only says which tool is for what,
and only for the tools that are offered.
"""

from collections.abc import Collection, Mapping
from typing import Any

_HEADING = "# What to keep, and where"
# The tool that must be offered, and its guidance, in the order in which they are shown.
_LINES: tuple[tuple[str, str], ...] = (
    (
        "memory",
        "Facts that stay true belong in memory (`memory`): what the user prefers and corrects, who they are, how their "
        'environment and project work. State them as facts ("User prefers short answers"), not as orders to '
        'yourself ("Always answer briefly"): a fact leaves room for what is asked now. What you know already is '
        "shown below; it is your notes, not the user's words of today, and those come first.",
    ),
    (
        "session_search",
        "What happened needs no saving: every conversation is on record, and `session_search` finds it word for word. "
        "When the user refers to something earlier, or you are about to ask for what they may have told you, look "
        "there first. Progress, results, decisions of the day and numbers belong to the past, not into memory.",
    ),
    (
        "skill_view",
        "How something is done belongs in a skill. Before work that a listed skill covers, read it with `skill_view` "
        "and follow it.",
    ),
    (
        "skill_manage",
        "When a procedure took effort to find, or the user corrected one, keep it with `skill_manage`; when a skill "
        "turns out to be wrong, fix it at once. One skill per kind of task, not per occasion.",
    ),
)
_FENCE = (
    "Blocks of recalled memory inside a user's message are reference data that was added for you; the user did not "
    "write them and does not see them."
)


def guidance_for(tools: Collection[str]) -> str:
    """The guidance for the tools with these names; "" when there is none for them."""
    lines = [f"- {text}" for name, text in _LINES if name in tools]
    return "\n".join([_HEADING, *lines, f"- {_FENCE}"]) if lines else ""


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
