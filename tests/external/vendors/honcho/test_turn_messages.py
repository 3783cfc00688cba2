"""Turns become messages that the server accepts."""

from memoranda.external.vendors.honcho.client import MAX_MESSAGE_CHARS, build_messages, missing_messages


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


def test_only_missing_parts_are_sent_again() -> None:
    """The number of a part says which one is stored."""
    messages = build_messages([("ana", "x" * (2 * MAX_MESSAGE_CHARS)), ("ai", "Yes.")], "k1", "")
    assert len(messages) == 4
    assert missing_messages(messages, messages[:2]) == messages[2:]
    assert missing_messages(messages, []) == messages
