"""From an event to what the host is answered: text for its model, or nothing."""

import json

from memoranda.adapters.hosts.hooks.events import PROMPT, STARTS
from memoranda.adapters.hosts.hooks.payload import Payload
from memoranda.app import Memory


def answer(memory: Memory, payload: Payload, host: str) -> str:
    """What goes to standard output: JSON that gives the model context, or "" when there is nothing to give."""
    # Each event loads what it needs and no more, because a host waits for it.
    if payload.event == STARTS:
        from memoranda.adapters.hosts.hooks.starting import remembered  # noqa: PLC0415

        return _context(payload.event, remembered(memory))
    if payload.event == PROMPT:
        from memoranda.adapters.hosts.hooks.evidence import evidence  # noqa: PLC0415

        return _context(payload.event, evidence(memory, payload, host))
    return ""


def _context(event: str, text: str) -> str:
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}, ensure_ascii=False)
