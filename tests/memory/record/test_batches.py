"""Messages that are appended together cost one search for secrets and one statement, and become the same rows."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.safety import redaction
from memoranda.safety.redaction import Redactor
from memoranda.safety.secrets import FoundSecret, find_secrets

KNOWN = "correct-horse-battery"
# In the form of an issuer, put together here so that no scanner takes this file for a leak.
TOKEN = "ghp" + "_AbC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a"
# Texts whose ends and beginnings could be taken for one credential, or hide one, where they meet.
FRAGMENTS = [
    "authorization: token",
    "authorization: Basic dXNlcjpBYmMxMjM0NTY3ODk=",
    "Bearer",
    "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9",
    "password",
    "password:",
    "password: Tr0ub4dor&3x",
    "= Tr0ub4dor&3x",
    "curl -u",
    "bob:Tr0ub4dor&3x",
    "curl -u bob:Tr0ub4dor&3x https://example.org",
    "-----BEGIN PRIVATE" + " KEY-----",
    TOKEN,
    TOKEN[:20],
    TOKEN[20:],
    KNOWN,
    KNOWN[:12],
    KNOWN[12:],
    "api_key is",
    "密码 password: Tr0ub4dor&3x",
    "\\n",
    "an ordinary sentence",
]


def _contents(store: SessionStore, session_id: str) -> list[Any]:
    return [(row["role"], row["content"], row["tool_calls"]) for row in store.messages.get_messages(session_id)]


def test_searching_messages_together_finds_what_searching_each_finds() -> None:
    """Whatever comes before and after."""
    redactor = Redactor([KNOWN])
    for texts in product(FRAGMENTS, repeat=2):
        messages = [{"role": "user", "content": text} for text in texts]
        if redactor.is_clean(messages):
            assert [redactor.text(text)[1] for text in texts] == [0, 0], texts


def test_a_clean_batch_is_searched_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once per message."""
    searched: list[str] = []

    def find(text: str) -> list[FoundSecret]:
        searched.append(text)
        return find_secrets(text)

    monkeypatch.setattr(redaction, "find_secrets", find)
    with open_store(path, redactor=Redactor([KNOWN])) as store:
        store.sessions.create_session("s", "cli")
        searched.clear()
        store.messages.append_messages("s", [{"role": "user", "content": f"sentence {n}"} for n in range(20)])
    assert len(searched) == 1


def test_one_secret_in_a_batch_is_redacted_alone(path: Path) -> None:
    """The other messages stay as they are, and the secret is counted once."""
    with open_store(path, redactor=Redactor([KNOWN])) as store:
        store.sessions.create_session("s", "cli")
        texts = ["before", f"it is {KNOWN}.", "after", *["more"] * 100, TOKEN]
        store.messages.append_messages("s", [{"role": "user", "content": text} for text in texts])
        found = [content for _, content, _ in _contents(store, "s")]
        assert found[:3] == ["before", "it is [redacted:known_value].", "after"]
        assert found[3:-1] == ["more"] * 100
        assert TOKEN not in found[-1]
        assert store.usage.statistics()["redacted_secrets"] == 2


def test_a_batch_becomes_the_rows_that_single_appends_make(store: SessionStore) -> None:
    """With ids in order, also after a deletion, whatever columns the messages have."""
    calls = [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning": "because"},
        {"role": "tool", "content": "y", "tool_name": "ls", "tool_call_id": "c", "unknown": [1]},
        {"role": "user", "content": [{"type": "text", "text": "z"}], "is_summary": True},
    ]
    for name in ("alone", "together", "gone"):
        store.sessions.create_session(name, "cli")
    for message in messages:
        store.messages.append_message("alone", **message)
    last = store.messages.append_messages("gone", messages)[-1]
    store.deletion.delete_session("gone")
    ids = store.messages.append_messages("together", messages)
    assert ids == [last + 1, last + 2, last + 3, last + 4]
    rows = [
        [{key: value for key, value in row.items() if key not in ("id", "session_id", "timestamp")} for row in found]
        for found in map(store.messages.get_messages, ("alone", "together"))
    ]
    assert rows[0] == rows[1]
    counts = [store.sessions.get_session(name) for name in ("alone", "together")]
    assert counts[0] is not None
    assert counts[1] is not None
    for column in ("message_count", "own_message_count", "tool_call_count"):
        assert counts[0][column] == counts[1][column]
    assert store.maintenance.miscounted_sessions() == []


def test_a_batch_with_known_external_ids_adds_only_the_others(store: SessionStore) -> None:
    """And returns the ids of all, in order."""
    store.sessions.create_session("s", "cli")
    first = store.messages.append_message("s", "user", "x", external_id="e")
    ids = store.messages.append_messages(
        "s", [{"role": "user", "content": "x", "external_id": "e"}, {"role": "user", "content": "y"}]
    )
    assert ids == [first, first + 1]
    assert len(store.messages.get_messages("s")) == 2


def test_new_messages_with_external_ids_are_inserted_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an import appends them; one that is stored already, or occurs twice, is not added again."""
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")

        def append(*names: str) -> list[int]:
            messages = [{"role": "user", "content": f"text of {name}", "external_id": name} for name in names]
            return store.messages.append_messages("s", messages)

        assert append("a", "b", "c", "b") == [1, 2, 3, 2]
        with monkeypatch.context() as only_together:
            only_together.delattr(type(store.engine.dialect), "add_row")
            assert append("d", "e") == [4, 5]
        assert append("e", "f") == [5, 6]
        contents = [content for _, content, _ in _contents(store, "s")]
        assert contents == [f"text of {name}" for name in "abcdef"]
        assert store.maintenance.miscounted_sessions() == []
