"""A turn as messages for a thread of Zep."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memoranda.external.vendors.text_parts import split_text
from memoranda.external.vendors.zep.client import MAX_MESSAGE_CHARS, MAX_MESSAGES_PER_CALL
from memoranda.external.vendors.zep.directory import SOURCE

_NAMESPACE = uuid.UUID("2f0f3a52-57f3-5f0e-8f5e-0d6f1f3f7a10")

ZepMessage = dict[str, Any]


def build_messages(
    user: str, assistant: str, key: str, session_id: str, reference_time: str, user_name: str = ""
) -> list[ZepMessage]:
    """The messages of a turn, long texts in parts; each names the conversation, the delivery and its number."""
    parts = [("user", part) for part in split_text(user, MAX_MESSAGE_CHARS)]
    parts += [("assistant", part) for part in split_text(assistant, MAX_MESSAGE_CHARS)]
    about = {"source": SOURCE, "session": session_id, "key": key, "parts": len(parts)}
    return [
        {"role": role, "content": text, "reference_time": reference_time, "metadata": {**about, "part": number}}
        | ({"name": user_name} if user_name and role == "user" else {})
        for number, (role, text) in enumerate(parts)
    ]


def missing_messages(messages: list[ZepMessage], stored: Iterable[Mapping[str, Any]]) -> list[ZepMessage]:
    """The messages of a turn that are not among the stored ones."""
    found = {(about.get("key"), about.get("part")) for row in stored if (about := row.get("metadata") or {})}
    return [message for message in messages if (message["metadata"]["key"], message["metadata"]["part"]) not in found]


def batches(messages: list[ZepMessage], thread: str) -> Iterator[tuple[list[ZepMessage], str]]:
    """The messages of a turn as requests to a thread, each with a key for idempotency that only these messages have."""
    for first in range(0, len(messages), MAX_MESSAGES_PER_CALL):
        batch = messages[first : first + MAX_MESSAGES_PER_CALL]
        numbers = ",".join(str(message["metadata"]["part"]) for message in batch)
        yield batch, idempotency_key(f"{thread} {batch[0]['metadata']['key']} {numbers}")


def idempotency_key(text: str) -> str:
    """A UUID made from a text."""
    return str(uuid.uuid5(_NAMESPACE, text))
