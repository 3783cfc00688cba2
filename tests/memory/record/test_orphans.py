"""Messages whose sessions were lost with a damaged file: they are kept, and no other user sees them."""

from pathlib import Path

import pytest

from memoranda.memory.record.maintenance import SALVAGED
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("others", "owner"), [([None], None), ([None, "ann"], SALVAGED), (["ann"], SALVAGED), ([], SALVAGED)]
)
def test_messages_without_a_session_belong_to_no_other_user(
    tmp_path: Path, others: list[str | None], owner: str | None
) -> None:
    """They belong to the home's own user only if there is no other user."""
    sessions = [
        {"id": f"s{place}", "source": "cli", "user_id": user, "started_at": 1.0, "last_active": 1.0}
        for place, user in enumerate(others)
    ]
    lost = [{"id": 7, "session_id": "lost", "role": "user", "content": "whose is this?", "timestamp": 5.0}]
    with open_store(tmp_path / "state.db") as store:
        taken = store.maintenance.take_rows({"sessions": sessions, "messages": lost})
        assert taken["messages"] == 1
        adopted = store.sessions.get_session("lost")
        assert adopted is not None
        assert (adopted["user_id"], adopted["source"], adopted["message_count"]) == (owner, SALVAGED, 1)
        for user in (None, "ann", "bob"):
            seen = store.scoped(Scope.of(user)).sessions.get_session("lost") is not None
            assert seen == (owner is None and user is None)


def test_a_row_of_which_nothing_is_left_is_skipped(path: Path) -> None:
    """A damaged page can have rows without a readable column; the others are saved."""
    with open_store(path) as store:
        sessions: list[dict[str, object]] = [
            {},
            {"id": None, "source": None},
            {"id": "s", "source": "cli", "started_at": 1.0},
        ]
        assert store.maintenance.take_rows({"sessions": sessions})["sessions"] == 1
