"""Secrets never reach the file, whatever way they come; the caller's objects do not change."""

import base64
import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.memory.record.store import SessionStore, open_store
from memoranda.safety.redaction import Redactor
from tests.memory.record.conftest import file_bytes

KNOWN = "correct-horse-battery"
AWKWARD = 'pass"word\\with\nlines é'
# In the form of an issuer, put together here so that no scanner takes this file for a leak.
TOKEN = "ghp" + "_AbC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a"
OTHER_TOKEN = TOKEN[:-1] + "b"
KEY_LINES = [base64.b64encode(random.Random(line).randbytes(48)).decode() for line in range(20)]
PRIVATE_KEY = "\n".join(["-----BEGIN PRIVATE" + " KEY-----", *KEY_LINES, "-----END PRIVATE" + " KEY-----", ""])


@pytest.fixture
def redacting(path: Path) -> Iterator[SessionStore]:
    with open_store(path, redactor=Redactor([KNOWN, AWKWARD, "short"])) as opened:
        yield opened


def _leaks(path: Path) -> list[str]:
    """Secrets that are in the files, plain or as JSON writes them."""
    written = file_bytes(path)
    forms = {KNOWN, TOKEN, OTHER_TOKEN, AWKWARD, *KEY_LINES}
    for _ in range(4):
        forms |= {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in forms for ascii in (True, False)}
    return sorted(form for form in forms if form.encode() in written)


SECRET_MESSAGES: dict[str, dict[str, Any]] = {
    "content": {"content": f"it is {KNOWN} and {TOKEN}."},
    "structured content": {"content": [{"type": "text", "text": f"a {KNOWN}"}, {"deep": [{"er": TOKEN}]}]},
    "keys": {"content": [{KNOWN: 1, TOKEN: {"x": KNOWN}}]},
    "tool calls": {"tool_calls": [{"id": "c", "function": {"name": "sh", "arguments": json.dumps({"p": KNOWN})}}]},
    "awkward value in arguments": {"tool_calls": [{"function": {"arguments": json.dumps({"p": AWKWARD})}}]},
    "awkward value, not escaped": {
        "tool_calls": [{"function": {"arguments": json.dumps({"p": AWKWARD}, ensure_ascii=False)}}]
    },
    "awkward value in JSON within arguments": {
        "tool_calls": [{"function": {"arguments": json.dumps({"body": json.dumps({"p": AWKWARD})})}}]
    },
    "awkward value in JSON within JSON, not escaped": {
        "content": json.dumps({"a": json.dumps({"b": json.dumps(AWKWARD, ensure_ascii=False)}, ensure_ascii=False)})
    },
    "private key": {"content": f"the key:\n{PRIVATE_KEY}\nkeep it"},
    "private key in arguments": {"tool_calls": [{"function": {"arguments": json.dumps({"text": PRIVATE_KEY})}}]},
    "private key by lines": {"content": [{"lines": PRIVATE_KEY.splitlines()}]},
    "tool calls as text": {"tool_calls": json.dumps([{"function": {"arguments": f"{TOKEN}"}}])},
    "awkward value": {"content": AWKWARD},
    "reasoning": {"reasoning": KNOWN, "reasoning_content": TOKEN},
    "structured reasoning": {"reasoning_details": [{"text": KNOWN}], "codex_reasoning_items": [{"x": TOKEN}]},
    "items": {"codex_message_items": [{"text": KNOWN}]},
    "tool name": {"tool_name": f"tool {KNOWN}"},
    "unknown fields": {"api_content": KNOWN, "own": {"x": [TOKEN]}},
    "half characters": {"content": f"\ud800 {KNOWN}", "reasoning": f"\udfff {TOKEN}"},
}


@pytest.mark.slow
@pytest.mark.parametrize("fields", SECRET_MESSAGES.values(), ids=SECRET_MESSAGES)
@pytest.mark.parametrize("way", ["append", "batch", "compact", "import"])
def test_no_part_of_a_message_contains_a_secret(
    redacting: SessionStore, path: Path, way: str, fields: dict[str, Any]
) -> None:
    """Appended, compressed or imported; it is counted, and the caller's message does not change."""
    message = {"role": "assistant", **fields}
    given = copy.deepcopy(message)
    redacting.sessions.create_session("s", "cli")
    if way == "append":
        redacting.messages.append_message("s", **message)
    elif way == "batch":
        redacting.messages.append_messages("s", [message])
    elif way == "compact":
        redacting.edits.archive_and_compact("s", [message])
    else:
        redacting.transfer.import_sessions([{"id": "s", "source": "x", "messages": [message]}])
    assert message == given
    assert _leaks(path) == []
    assert len(redacting.messages.get_messages("s")) == 1
    assert "[redacted:" in json.dumps(redacting.messages.get_messages("s"))
    assert redacting.usage.statistics()["redacted_secrets"] >= 1


def test_no_field_of_a_session_contains_a_secret(redacting: SessionStore, path: Path) -> None:
    """Prompt, configuration, title, unknown fields, billing, reasons, facts: however they are set."""
    steps: list[Any] = [
        lambda: redacting.sessions.create_session("a", "cli", system_prompt=f"use {KNOWN}"),
        lambda: redacting.sessions.create_session("b", "cli", model_config={"api_key": TOKEN, KNOWN: 1}),
        lambda: redacting.sessions.create_session("c", "cli", title=f"Key {KNOWN}"),
        lambda: redacting.sessions.create_session("d", "cli", cwd=KNOWN, nested=[{"x": TOKEN}]),
        lambda: redacting.sessions.create_session("e", "cli", model=KNOWN),
        lambda: redacting.sessions.update_session("a", system_prompt=TOKEN),
        lambda: redacting.sessions.update_session("a", model_config={"x": KNOWN}),
        lambda: redacting.sessions.update_session("a", billing_base_url=f"https://{KNOWN}.example"),
        lambda: redacting.titles.set_session_title("a", f"About {TOKEN}"),
        lambda: redacting.usage.update_token_counts("a", billing_base_url=f"https://{KNOWN}.example"),
        lambda: redacting.sessions.end_session("a", f"because {KNOWN}"),
        lambda: redacting.usage.set_meta("k", KNOWN),
        lambda: redacting.edits.redact_message(redacting.messages.append_message("a", "user", "x"), KNOWN),
        lambda: redacting.transfer.import_sessions([{"id": "f", "source": "x", "title": KNOWN, "own": {TOKEN: KNOWN}}]),
    ]
    for number, step in enumerate(steps):
        before = redacting.usage.statistics()["redacted_secrets"]
        step()
        assert _leaks(path) == [], number
        assert redacting.usage.statistics()["redacted_secrets"] > before, number


def test_redacted_secrets_are_counted_one_by_one(redacting: SessionStore) -> None:
    """Each occurrence, over the life of the store; what was refused or known already does not count."""
    redacting.sessions.create_session("s", "cli")
    redacting.messages.append_message("s", "user", f"{KNOWN} {KNOWN} {TOKEN}", external_id="e")
    assert redacting.usage.statistics()["redacted_secrets"] == 3
    with pytest.raises(ValueError):
        redacting.messages.append_messages("s", [{"role": "user", "content": KNOWN}, {"content": "no role"}])
    assert redacting.usage.statistics()["redacted_secrets"] == 3


def test_what_is_known_already_is_not_counted_again(redacting: SessionStore) -> None:
    """A message with the same external id adds nothing, not even to the count."""
    redacting.sessions.create_session("s", "cli")
    for _ in range(2):
        redacting.messages.append_message("s", "user", KNOWN, external_id="e")
    assert redacting.usage.statistics()["redacted_secrets"] == 1


def test_a_message_that_is_cleared_is_redacted_and_counted_once(redacting: SessionStore, path: Path) -> None:
    """As very long ones are when they are imported."""
    redacting.sessions.create_session("s", "cli")
    for _ in range(2):
        redacting.messages.append_and_clear("s", {"role": "user", "content": f"is {KNOWN}", "external_id": "e"})
    assert redacting.usage.statistics()["redacted_secrets"] == 1
    assert _leaks(path) == []
    (session,) = redacting.transfer.iter_export()
    assert (session["message_count"], session["messages"][0]["content"]) == (1, "is [redacted:known_value]")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"hunter2hunter2": 1, "anotherValue99": 2}, {"[redacted:known_value]": 1, "[redacted:known_value] (2)": 2}),
        (
            {"hunter2hunter2": 1, "[redacted:known_value]": 2, "anotherValue99": 3, "[redacted:known_value] (2)": 4},
            {
                "[redacted:known_value] (3)": 1,
                "[redacted:known_value]": 2,
                "[redacted:known_value] (4)": 3,
                "[redacted:known_value] (2)": 4,
            },
        ),
        ({"a hunter2hunter2": 1, "a anotherValue99": 2, "b": 3}, {"a [redacted:known_value]": 1,
          "a [redacted:known_value] (2)": 2, "b": 3}),
        ({TOKEN: [1], OTHER_TOKEN: [2]}, {"[redacted:github_token]": [1], "[redacted:github_token] (2)": [2]}),
    ],
)  # fmt: skip
def test_secrets_that_are_keys_stay_apart(given: dict[str, Any], kept: dict[str, Any]) -> None:
    """Each value of an object is kept, in its place, whatever its key becomes."""
    value, _ = Redactor(["hunter2hunter2", "anotherValue99"]).value({"object": given})
    assert value == {"object": kept}
    assert list(value["object"]) == list(kept)


@given(
    st.text(min_size=8, max_size=20).filter(lambda secret: not secret.isascii() or not secret.isalnum()),
    st.lists(st.booleans(), max_size=3),
)
def test_a_known_value_is_found_however_deep_in_json(secret: str, levels: list[bool]) -> None:
    """Text within text within text, each with or without escapes for what is not ASCII."""
    text = secret
    for ascii in levels:
        text = json.dumps({"x": text}, ensure_ascii=ascii)
    redacted, count = Redactor([secret]).text(text)
    assert count >= 1
    for _ in levels:
        redacted = json.loads(redacted)["x"]
    assert redacted == "[redacted:known_value]"


def test_a_known_value_is_found_with_the_escapes_of_html() -> None:
    """As some programs write JSON."""
    text = r'{"p": "a\u003cb\u0026c\u003ed-1234"}'
    assert Redactor(["a<b&c>d-1234"]).text(text) == ('{"p": "[redacted:known_value]"}', 1)


def test_names_stay_different(redacting: SessionStore, path: Path) -> None:
    """Two messages whose ids are secrets are still two; neither id is stored."""
    redacting.sessions.create_session("s", "cli")
    redacting.messages.append_message("s", "user", "1", external_id=TOKEN)
    redacting.messages.append_message("s", "user", "2", external_id=OTHER_TOKEN)
    redacting.messages.append_message("s", "user", "2", external_id=OTHER_TOKEN)
    rows = redacting.messages.get_messages("s")
    assert [row["content"] for row in rows] == ["1", "2"]
    assert _leaks(path) == []


def test_importing_with_a_redactor_twice_adds_nothing(redacting: SessionStore) -> None:
    """What was redacted on its way in is known the second time."""
    session = {"id": "s", "source": "x", "messages": [{"role": "user", "content": f"it is {KNOWN}", "timestamp": 1.0}]}
    assert redacting.transfer.import_sessions([session]).messages == 1
    assert redacting.transfer.import_sessions([session]).messages == 0
    assert redacting.usage.statistics()["redacted_secrets"] == 1


@pytest.mark.parametrize(
    "name", ["20260301_120000_a1b2c3", "claude-code-9b2f6c1e-3f6a-4f0e-9a51-0c6f2d1e8b7a", "01HZX3K9V7Q2W8E4R6T1Y5U0PA"]
)
def test_an_imported_session_keeps_its_id(redacting: SessionStore, name: str) -> None:
    """Ordinary ids are stored as they are."""
    report = redacting.transfer.import_sessions([{"id": name, "source": "x"}])
    assert report.imported == [name]
    assert redacting.lineage.get_compression_lineage(name) == [name]


def test_an_imported_session_is_found_by_the_id_it_came_with(redacting: SessionStore, path: Path) -> None:
    """Even when the id is a secret, which is not stored; a second import adds nothing."""
    session = {"id": TOKEN, "source": "x", "messages": [{"role": "user", "content": "hi"}]}
    child = {"id": "child", "source": "x", "parent_session_id": TOKEN}
    report = redacting.transfer.import_sessions([session, child])
    assert report.ok
    assert redacting.lineage.get_compression_lineage(TOKEN) == report.imported[:1]
    assert [row["content"] for row in redacting.messages.get_messages(TOKEN)] == ["hi"]
    assert report.detached == []
    assert redacting.transfer.import_sessions([session, child]).skipped == report.imported
    assert _leaks(path) == []


def test_everyday_text_is_not_changed(redacting: SessionStore) -> None:
    """Hashes, ids, paths, short words and base64 images are not secrets."""
    redacting.sessions.create_session("s", "cli")
    ordinary = (
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "call_AbCdEfGh1234567890IjKlMn", "short",
        "the token is in the vault", "password: see the vault", "/srv/token/key.pem", "api_key=$API_KEY",
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" * 200}}],
    )  # fmt: skip
    for content in ordinary:
        redacting.messages.append_message("s", "user", content)
    assert [row["content"] for row in redacting.messages.get_messages("s")] == list(ordinary)
    assert redacting.usage.statistics()["redacted_secrets"] == 0


def test_without_a_redactor_text_is_stored_as_it_comes(store: SessionStore, path: Path) -> None:
    """The switch is the caller's."""
    store.sessions.create_session("s", "cli", system_prompt=KNOWN)
    store.messages.append_message("s", "user", TOKEN)
    assert store.messages.get_messages("s")[0]["content"] == TOKEN
    assert KNOWN.encode() in file_bytes(path)
    assert store.usage.statistics()["redacted_secrets"] == 0


@pytest.mark.parametrize("how", ["delete", "clear", "redact", "prune"])
def test_what_was_deleted_is_in_no_file(store: SessionStore, path: Path, how: str) -> None:
    """Nor in the log; the rest is."""
    store.sessions.create_session("s", "cli", started_at=1.0)
    store.sessions.create_session("t", "cli")
    store.messages.append_message("t", "user", "what stays")
    numbers = store.messages.append_messages(
        "s", [{"role": "user", "content": f"gone for good {each}" * 50, "timestamp": 2.0} for each in range(50)]
    )
    assert b"gone for good" in file_bytes(path)
    if how == "delete":
        store.deletion.delete_session("s")
    elif how == "clear":
        store.edits.clear_messages("s")
    elif how == "prune":
        store.sessions.end_session("s", "user_exit")
        store.deletion.prune_sessions()
    else:
        for number in numbers:
            store.edits.redact_message(number)
    assert b"gone for good" not in file_bytes(path)
    assert b"what stays" in file_bytes(path)
