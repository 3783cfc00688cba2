"""What the user said to a program that calls our tools and does not say so: its hooks saw the prompts.

The log of hooks has the plain words of each prompt at once. A message of the record counts in full if a hook delivered
it: it has the digest of a prompt of the same conversation. The role of a message says nothing, because hosts write
reminders, summaries and notifications in the user's role.
"""

import time
from typing import TYPE_CHECKING, Any

from memoranda.errors import MemorandaError
from memoranda.importers.session_writer import session_name
from memoranda.integrations.hooks.events import USER_PROMPT
from memoranda.integrations.hooks.log import read_calls
from memoranda.memory.record.message_rows import is_own, text_of
from memoranda.search.recall_log import prompt_digest

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

_MAX_AGE_SECONDS = 24 * 3600.0
_MAX_PROMPTS = 100
_MAX_MESSAGES = 1_000


def heard_words(memory: "Memory") -> list[str]:
    """Return what hooks of this home heard the user say in the last day, in full where it is recorded."""
    since = time.time() - _MAX_AGE_SECONDS
    calls = [
        call
        for call in read_calls(memory.home.root)
        if call.get("event") == USER_PROMPT and call["at"] >= since and call.get("user") == memory.user
    ][:_MAX_PROMPTS]
    prompts: dict[str, set[str]] = {}
    for call in calls:
        name = session_name(str(call["host"]), str(call["session_id"]), memory.user)
        prompts.setdefault(name, set()).add(str(call.get("digest")))
    recorded = [
        text
        for name, delivered in prompts.items()
        for message in _messages(memory, name)
        if message["role"] == "user" and prompt_digest(text := text_of(message["content"])) in delivered
    ]
    return [*recorded, *(str(call["prompt"]) for call in reversed(calls))]


def recorded_words(memory: "Memory", session_id: str) -> list[str]:
    """Return what a program recorded as said by its user in a conversation; nothing if it cannot be read."""
    messages = _messages(memory, session_id)
    session = memory.sessions.get_session(session_id) if messages else None
    return [text_of(message["content"]) for message in messages if is_own(message, session)]


def _messages(memory: "Memory", session_id: str) -> list[dict[str, Any]]:
    if not session_id or not memory.services.has_record:
        return []
    try:
        return memory.sessions.get_messages(session_id)[-_MAX_MESSAGES:]
    except MemorandaError:
        # Nothing then supports what the program wants to save, and a person decides.
        return []
