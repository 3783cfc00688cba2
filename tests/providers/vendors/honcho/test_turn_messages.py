"""Turns become messages that the server accepts."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.providers.vendors.honcho.turn_messages import build_messages, missing_messages, split_text
from memoranda.providers.vendors.honcho.wire import MAX_MESSAGE_CHARS


@given(st.text(max_size=400), st.integers(30, 80))
def test_parts_are_within_the_limit_and_lose_no_word(text: str, limit: int) -> None:
    """However long the words are; only white space between parts disappears."""
    parts = list(split_text(text, limit))
    assert all(0 < len(part) <= limit for part in parts)
    joined = "".join(part.removeprefix("[continued] ") if number else part for number, part in enumerate(parts))
    clean = text.replace("\x00", "").encode("utf-8", "replace").decode()
    assert "".join(joined.split()) == "".join(clean.split())


def test_a_text_is_divided_where_a_paragraph_ends() -> None:
    """Else where a sentence or a word does."""
    parts = list(split_text("One. Two. Six.\n\nThree four five", 24))
    assert parts == ["One. Two. Six.", "[continued] Three four", "[continued] five"]


def test_a_short_text_is_one_message() -> None:
    """With the peer, the key and the time."""
    messages = build_messages([("ana", "Hello"), ("ai", " ")], "k1", "2026-11-16T08:00:00+00:00")
    assert messages == [
        {
            "peer_id": "ana",
            "content": "Hello",
            "metadata": {"source": "memoranda", "key": "k1", "part": 0, "parts": 1},
            "created_at": "2026-11-16T08:00:00+00:00",
        }
    ]


def test_half_a_character_and_nul_are_replaced() -> None:
    """The server answers them with an error 500, which would be repeated for ever."""
    assert list(split_text("a\x00b\ud800c")) == ["ab?c"]


def test_only_missing_parts_are_sent_again() -> None:
    """The number of a part says which one is stored."""
    messages = build_messages([("ana", "x" * (2 * MAX_MESSAGE_CHARS)), ("ai", "Yes.")], "k1", "")
    assert len(messages) == 4
    assert missing_messages(messages, messages[:2]) == messages[2:]
    assert missing_messages(messages, []) == messages
