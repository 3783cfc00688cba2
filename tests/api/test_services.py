"""The services of a home: stores that open when they are first used, and close together."""

from pathlib import Path

import pytest

from memoranda.api.memory import open_memory
from memoranda.api.services import new_session_id
from tests.external.diary import diary_home

pytestmark = pytest.mark.slow


def test_asking_for_the_record_does_not_create_it(tmp_path: Path) -> None:
    """A home without a session store has none after it was asked for sessions."""
    with open_memory(tmp_path) as memory:
        assert not memory.services.has_record
        assert memory.services.latest_session("s1", None) == "s1"
        assert list(tmp_path.iterdir()) == []
        memory.session(session_id="s1").record("user", "Hello")
        assert memory.services.has_record


def test_each_user_has_stores_of_their_own(tmp_path: Path) -> None:
    """What one user saves is in no other user's store, nor in that of the home."""
    with open_memory(tmp_path) as memory:
        memory.session(user="ann", session_id="s1").record("user", "Ann's question")
        memory.session(user="ann").remember("Ann prefers tea.")
        services = memory.services
        assert services.sessions_for("ann").get_session("s1")
        assert services.sessions_for("bob").get_session("s1") is None
        assert services.curated_for("ann").entries("memory") == ("Ann prefers tea.",)
        assert services.curated_for("bob").entries("memory") == services.curated_for(None).entries("memory") == ()


def test_the_stores_of_a_user_are_kept_until_the_home_is_closed(tmp_path: Path) -> None:
    """The same view serves every call; after closing, the next call opens the record again."""
    memory = open_memory(tmp_path)
    memory.session(user="ann", session_id="s1").record("user", "Ann's question")
    first = memory.services.sessions_for("ann")
    assert memory.services.sessions_for("ann") is first
    assert memory.services.sessions_for("bob") is not first
    memory.close()
    with open_memory(tmp_path) as memory:
        assert memory.services.sessions_for("ann") is not first
        assert memory.services.sessions_for("ann").get_session("s1")


def test_closing_a_home_closes_the_external_memory_of_sessions_that_were_not_ended(tmp_path: Path) -> None:
    """One that was ended is closed already, and not held any longer."""
    with open_memory(diary_home(tmp_path)) as memory:
        ended, left_open = memory.session(source="cli"), memory.session(source="cli")
        external = left_open.external
        assert external.active
        ended.end()
        assert memory.services._external == {external}
    assert not external.active
    assert memory.services._external == set()


def test_a_session_that_is_resumed_after_its_end_is_closed_with_the_home_too(tmp_path: Path) -> None:
    """Its next turn starts an external memory, which the home closes."""
    with open_memory(diary_home(tmp_path)) as memory:
        session = memory.session(source="cli")
        session.turn("First.").done("One.")
        session.end()
        session.turn("Second.").done("Two.")
        assert session.external.active
    assert not session.external.active


def test_ids_of_sessions_sort_by_time() -> None:
    """To the second, and no two are equal."""
    ids = [new_session_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert [session_id[:15] for session_id in ids] == sorted(session_id[:15] for session_id in ids)
