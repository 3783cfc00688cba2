"""Helpers of the contracts: asserting a refusal, and creating conversations."""

from collections.abc import Iterator
from contextlib import contextmanager

from memoranda.errors import SessionError
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START


@contextmanager
def expect_refusal(*words: str) -> Iterator[None]:
    """Assert that the block raises SessionError with a message that contains these words."""
    try:
        yield
    except SessionError as error:
        missing = [word for word in words if word.casefold() not in str(error).casefold()]
        assert not missing, f"{error} does not say {missing}"
    else:
        raise AssertionError("The call was not refused.")


def say(store: SessionStore, session_id: str, *texts: str, role: str = "user") -> list[int]:
    """Append texts to a session."""
    return [store.messages.append_message(session_id, role, text) for text in texts]


def chain(store: SessionStore, *names: str, user_id: str | None = None) -> None:
    """Create sessions that continue each other after compression, each with one message that is its name."""
    for number, name in enumerate(names):
        parent = names[number - 1] if number else None
        store.sessions.create_session(name, "cli", user_id=user_id, parent_session_id=parent, started_at=100.0 + number)
        store.messages.append_message(name, "user", name, timestamp=100.5 + number)
        if number < len(names) - 1:
            store.sessions.end_session(name, "compression")


def compact(store: SessionStore, session_id: str, keep: int) -> list[int]:
    """Compress a session in place as an agent does: a summary, then copies of its last messages."""
    kept = store.messages.get_messages(session_id)[-keep:] if keep else []
    summary = {"role": "user", "content": "What was said before, in short.", "is_summary": True}
    return store.edits.archive_and_compact(session_id, [summary, *({**row, "copy_of": row["id"]} for row in kept)])


def contents(store: SessionStore, session_id: str, include_inactive: bool = False) -> list[object]:
    return [row["content"] for row in store.messages.get_messages(session_id, include_inactive=include_inactive)]


def findable(store: SessionStore) -> list[object]:
    """The contents that a follower of the store could find."""
    return [message.content for message in store.feed.messages_after(START, 10_000).messages]
