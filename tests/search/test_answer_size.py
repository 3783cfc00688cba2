"""Every answer of the session_search tool keeps to its size, whatever it is asked and whatever it repeats."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.request import echo_input, echo_list, fit_json
from memoranda.search.settings import RecallSettings
from memoranda.search.tool import PARAMETERS, SessionSearchTool
from memoranda.support.shorten import json_size
from tests.examples import examples
from tests.search.past import BEGIN, tell

SMALLEST = 4_000
AWKWARD = '\x01"\\\n\ud800漢😀\x7f'

# A few characters many times over are as long as anything, and quickly made.
long_texts = st.builds(
    lambda pieces, times: "".join(piece * times for piece in pieces),
    st.lists(st.sampled_from([*AWKWARD, "zebra ", "nowhere", ",", " ", "OR ", "-", "a"]), max_size=12),
    st.sampled_from([1, 3, 50, 400, 20_000]),
)
values = st.one_of(
    long_texts,
    st.text(st.characters()),
    st.integers(),
    st.just(10**5_000),
    st.floats(),
    st.none(),
    st.booleans(),
    st.lists(long_texts, max_size=5),
    st.lists(st.integers(), max_size=3),
    st.just({"nested": ["x" * 50_000]}),
    st.just([[[["deep"]]]] * 5_000),
    st.sampled_from(["s1", "awkward", "zebra", "user", "cli", "2020-01-01", "30d", "newest", 1, 5]),
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionDB]:
    with SessionDB(tmp_path_factory.mktemp("home") / "state.db") as opened:
        for number in range(12):
            said = [f"zebra {'' if number else 'okapi '}{char * 3_000}" for char in AWKWARD]
            tell(opened, f"s{number}", said, title=f"Zebra {number}", at=BEGIN + number)
        name = "\x02" * 190
        tell(opened, f"awkward{name}", ["the zebra"], source=name, model=name, project=name, user_id="u" * 5_000)
        opened.index.catch_up()
        yield opened


def _fits(answer: Any, size: int) -> bool:
    text = json.dumps(answer, ensure_ascii=False)
    assert json.loads(text)["success"] in (True, False)
    return len(text) <= size


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150), deadline=None)
@given(arguments=st.dictionaries(st.sampled_from(sorted(PARAMETERS["properties"])), values))
def test_every_answer_keeps_to_its_size(db: SessionDB, arguments: dict[str, Any]) -> None:
    """Refusals, reasons and words that were not found included."""
    for scope in (Scope.everyone(), Scope.of("u" * 5_000)):
        tool = SessionSearchTool(partial(db.scoped, scope), RecallSettings(answer_chars=SMALLEST))
        answer = tool.call(arguments)
        assert _fits(answer, SMALLEST), arguments
        assert answer["success"] or answer["reason"] not in ("internal", "too_large"), answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {"query": "zebra nowhereword" + "\x01" * 1_900, "why": True, "limit": 10},
        {"query": " ".join(f"nowhere{n}x" + "\x01" * 180 for n in range(10)), "why": True},
        {"query": "zebra", "source": "a" * 100_000, "why": True},
        {"query": "zebra", "source": [f"{n}" + "\\" * 5_000 for n in range(50)], "why": True},
        {"query": "zebra", "source": [f"source {n}" for n in range(40_000)]},
        {"query": "zebra", "since": ["x" * 100_000]},
        {"query": "zebra", "sort": "x" * 100_000},
        {"query": "zebra", "limit": "x" * 100_000},
        {"query": "zebra", "role_filter": "x" * 100_000},
        {"session_id": "z" * 100_000},
        {"session_id": "z" * 100_000, "around_message_id": 3},
        {"query": "zebra" * 100_000, "why": True},
        {"project": "x" * 100_000},
    ],
    ids=lambda arguments: str(arguments)[:40],
)
def test_what_was_typed_is_repeated_in_part(db: SessionDB, arguments: dict[str, Any]) -> None:
    """However much it was."""
    answer = SessionSearchTool(lambda: db, RecallSettings(answer_chars=SMALLEST)).call(arguments)
    assert _fits(answer, SMALLEST)
    assert answer.get("reason") not in ("internal", "too_large", "unavailable"), answer


@pytest.mark.slow
def test_long_words_leave_room_for_what_was_found(db: SessionDB) -> None:
    """Repeating what was typed never takes the place of the results."""
    slashes = "\\" * 60
    words = " ".join(f'"{n} {slashes}" nowhere{n}{"y" * 40}' for n in range(4))
    answer = SessionSearchTool(lambda: db, RecallSettings(answer_chars=SMALLEST)).call(
        {"query": f"okapi {words}", "why": True, "source": ["cli", *(f"{n}" * 90 for n in range(9))]}
    )
    assert answer["not_found"] and answer["results"][0]["snippet"]


@pytest.mark.slow
def test_an_unpaired_surrogate_names_no_session(db: SessionDB) -> None:
    """The session is not found, and the store reports no error."""
    for arguments in ({"session_id": "\ud800"}, {"session_id": "\udfff", "around_message_id": 1}):
        answer = SessionSearchTool(lambda: db).call(arguments)
        assert answer["reason"] == "not_found"
        answer["error"].encode()


def test_an_error_is_reported_briefly() -> None:
    """This is true however long the message of the error is."""

    def fail() -> SessionDB:
        raise StorageError("x" * 100_000)

    assert _fits(SessionSearchTool(fail).call({}), SMALLEST)


@pytest.mark.slow
def test_a_conversation_that_does_not_fit_is_skipped(db: SessionDB) -> None:
    """The list continues after it."""
    tool = SessionSearchTool(lambda: db, RecallSettings(answer_chars=900))
    seen: list[str] = []
    cursor: str | None = "0"
    while cursor is not None:
        answer = tool.call({"limit": 2, "cursor": cursor})
        assert _fits(answer, 900)
        assert answer.get("cursor") != cursor
        seen += [row["session_id"] for row in answer["results"]]
        cursor = answer.get("cursor")
    assert seen == [f"s{number}" for number in reversed(range(12))]


@given(text=st.text(st.characters()), room=st.integers(1, 60))
def test_text_is_cut_to_its_room(text: str, room: int) -> None:
    """As JSON, in UTF-8."""
    cut = fit_json(text * 5, room)
    assert not cut or json_size(cut) <= room
    cut.encode()
    short = echo_input(text * 5, room)
    assert json_size(short) <= 2 * room + 2
    short.encode()


@pytest.mark.slow
@given(texts=st.lists(st.text(st.characters(), min_size=1)), room=st.integers(20, 300))
def test_as_many_names_are_repeated_as_there_is_room_for(texts: list[str], room: int) -> None:
    """One at least, cut if it must be."""
    shown = echo_list(texts, room)
    assert json_size(shown) <= room + 2
    assert bool(shown) == bool(texts)
