"""Any store, exported and imported elsewhere, is the same store; twice, and in pieces, as well."""

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError
from memoranda.memory.record.rotation import ContextItem, KeptMessage, Summary
from memoranda.memory.record.store import SessionStore, open_store
from tests.contracts.store.assertions import compact, findable
from tests.contracts.store.transfer import store_content
from tests.examples import examples
from tests.memory.record.conftest import quick_directory
from tests.memory.record.test_fidelity import TEXT

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c", "d")
# What messages can hold is tried elsewhere; here it matters which are told apart.
MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool"]),
        "content": st.sampled_from(["same", "", None, "[1]", [1], "half \ud800", [{"type": "text", "text": "部\x00"}]]),
    },
    optional={
        "timestamp": st.sampled_from([0.0, 5.0, 5.5]),
        "external_id": st.sampled_from(["e1", "e2"]),
        "tool_calls": st.sampled_from([[{"id": "c"}], []]),
        "reasoning": st.sampled_from(["r", "s"]),
        "own": st.sampled_from([{"x": None}, "text"]),
    },
)
STEP = st.tuples(
    st.sampled_from(["make", "say", "say", "say", "continue", "branch", "delegate", "title", "rewind", "compact", "end",
                     "archive", "tokens", "delete", "rotate", "rotate"]),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    MESSAGE,
    TEXT,
)  # fmt: skip


def _rotate(store: SessionStore, name: str, other: str) -> None:
    live = store.rotation.live_context(name)
    context: list[ContextItem] = [Summary("In short."), *map(KeptMessage, [each.id for each in live[-2:]])]
    if len(live) % 3 == 2:
        store.rotation.branch_session(name, other)
    else:
        store.rotation.rotate_session(name, other, context, last_seen=live[-1].id if live else 0)


def _do(store: SessionStore, step: tuple[str, str, str, dict[str, Any], str]) -> None:
    what, name, other, message, text = step
    if what == "make":
        store.sessions.create_session(name, "cli", model_config={"x": [1, "é"]}, own=text)
    elif what == "say":
        store.messages.append_message(name, **message)
    elif what == "continue":
        store.sessions.end_session(name, "compression")
        store.sessions.create_session(other, "cli", parent_session_id=name, started_at=1e9)
    elif what in ("branch", "delegate"):
        kind = "branch" if what == "branch" else "delegation"
        store.sessions.create_session(other, "cli", parent_session_id=name, relation=kind)
    elif what == "title":
        store.titles.set_session_title(name, text)
    elif what == "rewind":
        users = [
            row["id"] for row in store.messages.get_messages(name) if row["role"] == "user" and not row["is_summary"]
        ]
        store.edits.rewind_to_message(name, users[-1] if users else 0)
    elif what == "compact":
        compact(store, name, 2)
    elif what == "rotate":
        _rotate(store, name, other)
    elif what == "end":
        store.sessions.end_session(name, "user_exit")
    elif what == "archive":
        store.sessions.set_session_archived(name, True)
    elif what == "tokens":
        store.usage.update_token_counts(name, input_tokens=3, actual_cost_usd=0.5)
    else:
        store.deletion.delete_session(name)


@settings(max_examples=examples(60))
@given(steps=st.lists(STEP, min_size=3, max_size=25), seed=st.integers(0, 99))
def test_export_then_import_gives_the_same_store(steps: list[Any], seed: int) -> None:
    """As values or as JSON text, in any order of sessions; the second time nothing is added."""
    with (
        quick_directory() as directory,
        open_store(directory / "one.db") as store,
        open_store(directory / "other.db") as other,
    ):
        for number, step in enumerate([("make", each, each, {}, "") for each in NAMES[:2]] + steps):
            with suppress(SessionError):
                _do(store, step)
            if number == len(steps) // 2:
                # Half of it has been exported before.
                other.transfer.import_sessions(store.transfer.export_all())
                seen = other.feed.head()
                assert other.transfer.import_sessions(store.transfer.export_all()).messages == 0
                assert other.feed.head() == seen
                other.deletion.delete_sessions([row["id"] for row in other.transfer.export_all()])
        exported = store.transfer.export_all()
        shuffled = json.loads(json.dumps(exported))
        Random(seed).shuffle(shuffled)
        report = other.transfer.import_sessions(shuffled)
        assert report.ok, report.errors
        assert report.detached == []
        assert store_content(other) == store_content(store)
        assert sorted(map(repr, findable(other))) == sorted(map(repr, findable(store)))
        assert store.maintenance.miscounted_sessions() == other.maintenance.miscounted_sessions() == []
        assert store.maintenance.lost_repetitions() == other.maintenance.lost_repetitions() == []
        before = other.feed.head()
        again = other.transfer.import_sessions(exported)
        assert (again.imported, again.updated, again.messages) == ([], [], 0)
        assert other.feed.head() == before
