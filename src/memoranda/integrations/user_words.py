"""What the user said to a program that calls our tools and does not say so: its hooks saw the prompts.

A prompt is in the log of hooks at once, with only its plain words; the turn is in the record, in full, as soon as it
has ended. Both are the user's own words, which nothing that the program read can add to.
"""

import time
from typing import TYPE_CHECKING

from memoranda.errors import MemorandaError
from memoranda.importers.session_writer import session_name
from memoranda.integrations.hooks.events import USER_PROMPT
from memoranda.integrations.hooks.log import read_calls
from memoranda.memory.record.message_rows import text_of

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

_MAX_AGE_SECONDS = 24 * 3600.0
_MAX_PROMPTS = 100
_MAX_MESSAGES = 1_000


def heard_words(memory: "Memory") -> list[str]:
    """What hooks of this home heard the user say in the last day, and what is recorded of those conversations."""
    since = time.time() - _MAX_AGE_SECONDS
    calls = [
        call
        for call in read_calls(memory.home.root)
        if call.get("event") == USER_PROMPT and call["at"] >= since and call.get("user") == memory.user
    ][:_MAX_PROMPTS]
    names = dict.fromkeys(session_name(str(call["host"]), str(call["session_id"]), memory.user) for call in calls)
    recorded = [text for name in names for text in recorded_words(memory, name)]
    return [*recorded, *(str(call["prompt"]) for call in reversed(calls))]


def recorded_words(memory: "Memory", session_id: str) -> list[str]:
    """What the user said in a recorded conversation; nothing without one, or if it cannot be read."""
    if not session_id or not memory.services.has_record:
        return []
    try:
        messages = memory.sessions.get_messages(session_id)
    except MemorandaError:
        # Nothing then supports what the program wants to save, and a person decides.
        return []
    return [text_of(message["content"]) for message in messages[-_MAX_MESSAGES:] if message["role"] == "user"]
