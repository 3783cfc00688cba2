"""Whatever a title is made of: the next one can be set, is found again, and belongs to no other session."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError
from memoranda.memory.record.store import SessionStore, open_store
from tests.examples import examples
from tests.memory.record.conftest import quick_directory

pytestmark = pytest.mark.slow

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=110)
ENDS = st.sampled_from(["", " #9", " #99", " #1", "…"])
LONG = st.builds(str.__add__, st.text("x…#", min_size=85, max_size=98), ENDS)
TITLE = ANY_TEXT | st.text("ab #%_\\0129…", max_size=105) | LONG


@pytest.fixture(scope="module")
def shared() -> Iterator[SessionStore]:
    with quick_directory() as directory, open_store(directory / "state.db") as opened:
        yield opened


@settings(max_examples=examples(60))
@example(base="0" * 98, rounds=3)
@given(base=TITLE, rounds=st.integers(1, 11))
def test_the_next_title_can_always_be_set(shared: SessionStore, base: str, rounds: int) -> None:
    """Again and again; its first word leads to the last of them, and each one to its own session."""
    shared.deletion.delete_sessions([row["id"] for row in shared.transfer.export_all()])
    given_titles: dict[str, str] = {}
    for number in range(rounds):
        try:
            title = shared.titles.get_next_title_in_lineage(base)
        except SessionError:
            return
        name = f"s{number}"
        shared.sessions.create_session(name, "cli", title=title)
        assert shared.titles.get_session_title(name) == title
        assert len(title) <= 100
        assert title not in given_titles
        given_titles[title] = name
    for title, name in given_titles.items():
        exact, _ = shared.titles.list_titled(title)
        assert [each.session_id for each in exact] == [name]
    first = next(iter(given_titles))
    assert shared.titles.resolve_session_by_title(first) == f"s{rounds - 1}"
    for title, name in list(given_titles.items())[1:]:
        assert shared.titles.resolve_session_by_title(title) == name


@settings(max_examples=examples(60))
@given(title=ANY_TEXT)
def test_a_title_is_kept_or_refused(shared: SessionStore, title: str) -> None:
    """Setting what was kept once more changes nothing."""
    shared.sessions.create_session("one", "cli")
    try:
        shared.titles.set_session_title("one", title)
    except SessionError:
        return
    kept = shared.titles.get_session_title("one")
    assert kept is None or (kept == kept.strip() and kept.encode() and len(kept) <= 100)
    if kept is not None:
        assert shared.titles.resolve_session_by_title(kept) == "one"
        assert [each.session_id for each in shared.titles.list_titled(title)[0]] == ["one"]
        shared.titles.set_session_title("one", kept)
        assert shared.titles.get_session_title("one") == kept
        shared.titles.set_session_title("one", None)
