"""What another memory stored as a memory, a fact or a note, as messages that search finds.

The notes of one collection (a user's memories, a namespace, a vault) are the messages of one session, whose source is
the program's name with `:notes`. So search, export, deletion and undo work on them as on every conversation. A note is
never an instruction: it has the role of an assistant, whose earlier words a model reads as quotations.
"""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp, short_digest
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage

_NOTES = ":notes"
# Values that say nothing, and the text itself.
_MAX_FIELDS = 50


def notes_of(program: str, collection: str, title: str, **more: Any) -> ImportedConversation:
    """Build the session of a collection of notes."""
    return ImportedConversation(collection, title, source=f"{program}{_NOTES}", **more)


def note(
    collection: str, note_id: str, text: str, at: Any, origin: Mapping[str, Any] | None = None, line: int | None = None
) -> ImportedMessage:
    """Build one note; a changed text is a new note, because the record keeps what it has.

    `at` is when the text was written. `origin` has what else the program knows about it.
    """
    kept = {name: value for name, value in (origin or {}).items() if value not in (None, "", [], {})}
    return ImportedMessage(
        {
            "role": "assistant",
            "content": text,
            # With the collection: sessions that start with the same id count as copies of each other.
            "external_id": f"{collection}/{note_id}@{short_digest(text)[:12]}",
            "timestamp": at,
            "note": {"id": note_id, **dict(list(kept.items())[:_MAX_FIELDS])},
        },
        line,
    )


def dated_text(text: str, valid_from: Any, valid_until: Any) -> str:
    """Return a fact with the dates between which it was true, which a model could not read from a field."""
    since, until = _date(valid_from), _date(valid_until)
    if since and until:
        return f"{text} (true from {since} until {until})"
    return f"{text} (true from {since})" if since else f"{text} (true until {until})" if until else text


def value_text(value: Any) -> str:
    """Return the text of a stored value: its only text, or JSON with readable letters."""
    if isinstance(value, dict) and len(value) == 1:
        only = next(iter(value.values()))
        if isinstance(only, str):
            return only
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _date(value: Any) -> str:
    return str(value)[:10] if isinstance(value, str) and parse_timestamp(value) is not None else ""
