"""Whatever several users do in whatever order, none of them sees or changes anything of another's."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from tests.contracts.store.scopes import reads, writes
from tests.examples import examples
from tests.memory.record.conftest import quick_directory

pytestmark = pytest.mark.slow

USERS: tuple[str | None, ...] = (None, "%", "_", "a' OR 1=1", "ann", "Ann", "None", "NULL", "\x00", "ann\x00x", "é")
NAMES = ("s0", "s1", "s2", "s%", "S0", "s_")

STEP = st.tuples(
    st.sampled_from(USERS),
    st.sampled_from(NAMES),
    st.integers(1, 12),
    st.sampled_from(
        [
            "make",
            "say",
            "child",
            "rewind",
            "restore",
            "compact",
            "clear",
            "redact",
            "title",
            "delete",
            "archive",
            "end",
            "reopen",
            "update",
            "tokens",
            "import",
            "append_known",
            "delete_several",
            "prune",
        ]
    ),
)


def _do(view: SessionStore, name: str, number: int, what: str) -> Any:
    if what == "make":
        return view.sessions.create_session(name, "cli", title=f"Title of {name}")
    if what == "say":
        return view.messages.append_message(name, "user", f"said by {view.scope.user!r}")
    if what == "child":
        return view.sessions.create_session(f"{name} child {number}", "subagent", parent_session_id=name)
    return writes(view, name, number)[what]()


def _everything(store: SessionStore) -> dict[str, Any]:
    return {row["id"]: row for row in store.transfer.export_all()}


@settings(max_examples=examples(40))
@given(steps=st.lists(STEP, min_size=5, max_size=30))
def test_no_step_of_a_user_touches_or_shows_what_is_not_theirs(steps: list[tuple[str | None, str, int, str]]) -> None:
    """Before and after every step, all that is not the user's own is equal; own reads show own sessions only."""
    with quick_directory() as directory, open_store(directory / "state.db") as store:
        for user, session_id, number, what in steps:
            before = _everything(store)
            view = store.scoped(Scope.of(user))
            with suppress(SessionError):
                _do(view, session_id, number, what)
            after = _everything(store)
            others = {each: row for each, row in before.items() if row["user_id"] != user}
            assert {each: row for each, row in after.items() if row["user_id"] != user} == others
        _look_around(store)


def test_no_user_has_an_empty_name(store: SessionStore) -> None:
    """An empty name could be mistaken for the home's own user."""
    with pytest.raises(SessionError):
        store.scoped(Scope.of(""))
    with pytest.raises(SessionError):
        store.sessions.create_session("s", "cli", user_id="")


def _look_around(store: SessionStore) -> None:
    everything = _everything(store)
    for user in USERS:
        view = store.scoped(Scope.of(user))
        own = {each: row for each, row in everything.items() if row["user_id"] == user}
        assert {row["id"]: row for row in view.transfer.export_all()} == own
        assert view.listing.session_count() == len(own)
        assert view.usage.statistics()["messages"] == sum(row["message_count"] for row in own.values())
        listed = {
            row["id"]
            for order in (False, True)
            for row in view.listing.list_sessions_rich(limit=1000, include_children=True, order_by_last_active=order)
        }
        assert listed <= set(own)
        for name, row in everything.items():
            if name in own:
                continue
            number = row["messages"][0]["id"] if row["messages"] else 10**6
            shown = [what for what, ask in reads(view, name, number, "no such title").items() if _shows(ask)]
            assert shown == [], (user, name)


def _shows(ask: Callable[[], Any]) -> bool:
    try:
        return bool(ask())
    except SessionError:
        return False
