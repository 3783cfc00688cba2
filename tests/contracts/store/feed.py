"""Contract of the feed: a follower that reads only what is new ends up with exactly what can be found."""

from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START, Position
from tests.contracts.store.assertions import compact, say


class FollowerCopy:
    """A follower's copy of the searchable messages and titles, which reads only what is new."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._message = self._change = START
        self.found: dict[int, FeedMessage] = {}
        self.titles: dict[str, str | None] = {}

    def catch_up(self) -> None:
        head = self._store.feed.head()
        while (batch := self._store.feed.messages_after(self._message, 2)).messages:
            self.found |= {message.id: message for message in batch.messages}
            self._message = batch.position
            self._learn_titles(*(message.session_id for message in batch.messages))
        while changes := self._store.feed.changes_after(self._change, 2):
            for change in changes:
                self._change = change.position
                self._read_again(change.session_id, change.from_message)
        assert self._store.feed.head() == head

    def _learn_titles(self, *session_ids: str) -> None:
        sessions = self._store.feed.feed_sessions(session_ids)
        self.titles |= {name: session.title for name, session in sessions.items()}

    def _read_again(self, session_id: str, first: int | None) -> None:
        if first is None and not self._store.feed.feed_sessions([session_id]):
            self.titles.pop(session_id, None)
            first = 0
        if first is not None:
            unchanged = {
                number: message
                for number, message in self.found.items()
                if message.session_id != session_id or number < first
            }
            current = self._store.feed.messages_from(session_id, first)
            self.found = unchanged | {message.id: message for message in current}
        self._learn_titles(session_id)


class FeedContract:
    def test_a_store_has_a_unique_id(self, store: SessionStore, other: SessionStore) -> None:
        """It is the same every time, and no other store has it."""
        assert store.feed.store_id() == store.feed.store_id() != other.feed.store_id()

    def test_the_head_moves_with_every_append_and_change(self, store: SessionStore) -> None:
        """Appending moves the message, everything else the change."""
        assert store.feed.head() == (START, START)
        store.sessions.create_session("s", "cli")
        before = store.feed.head()
        say(store, "s", "x")
        appended = store.feed.head()
        assert appended.message > before.message
        assert appended.change == before.change
        store.titles.set_session_title("s", "T")
        assert store.feed.head().change > before.change
        assert store.feed.head().message == appended.message

    def test_a_follower_finds_what_can_be_found(self, store: SessionStore) -> None:
        """After every kind of change, although it reads only what is new."""
        follower = FollowerCopy(store)
        store.sessions.create_session("s", "cli", title="One")
        store.sessions.create_session("t", "cli")
        ids: list[int] = []
        steps = (
            lambda: ids.extend(say(store, "s", "1", "2", "3")),
            lambda: ids.extend(say(store, "t", "4")),
            lambda: store.edits.rewind_to_message("s", ids[1]),
            lambda: store.edits.restore_rewound("s", ids[1]),
            lambda: store.edits.redact_message(ids[0]),
            lambda: compact(store, "s", 1),
            lambda: store.titles.set_session_title("t", "Two"),
            lambda: store.sessions.set_session_archived("t", True),
            lambda: store.deletion.delete_session("s"),
            lambda: ids.extend(say(store, "t", "5")),
            lambda: store.edits.clear_messages("t"),
        )
        for step in steps:
            step()
            follower.catch_up()
            found = {message.id: message for message in store.feed.messages_after(START, 1000).messages}
            assert follower.found == found
            assert store.feed.messages_by_id([*ids, 10**6]) == {
                number: found[number] for number in ids if number in found
            }
            assert follower.titles == {
                row["id"]: row["title"] for row in store.transfer.export_all() if row["id"] in follower.titles
            }
            follower.catch_up()
        assert follower.titles == {"t": "Two"}

    def test_a_message_in_the_feed_is_decoded(self, store: SessionStore) -> None:
        """Content is text or structured, and tool calls are as they were recorded."""
        store.sessions.create_session("s", "cli", user_id="u", started_at=5.0)
        calls = [{"id": "c", "function": {"name": "ls", "arguments": '{"p": "é"}'}}]
        number = store.messages.append_message(
            "s", "assistant", [{"type": "text", "text": "部"}], tool_calls=calls, tool_name="n", timestamp=7.5
        )
        expected = FeedMessage(number, "s", "assistant", [{"type": "text", "text": "部"}], "n", calls, 7.5, False)
        assert store.feed.messages_after(START, 5).messages == store.feed.messages_from("s", number) == [expected]
        session = store.feed.feed_sessions(["s", "missing"])["s"]
        assert (session.user_id, session.source, session.started_at, session.title) == ("u", "cli", 5.0, None)
        assert (session.conversation_id, bool(session.archived)) == ("s", False)

    def test_a_scan_finds_patterns_where_words_are(self, store: SessionStore) -> None:
        """It searches content, calls and tool names, newest first, after a position, and ignores case in ASCII."""
        store.sessions.create_session("s", "cli")
        first = store.messages.append_message("s", "user", "Needle 50%")
        second = store.messages.append_message(
            "s", "assistant", None, tool_calls=[{"function": {"arguments": "部署needle"}}]
        )
        third = store.messages.append_message("s", "tool", "x", tool_name="needle_tool")
        store.messages.append_message("s", "user", "nothing 500")
        after_first = store.feed.messages_after(START, 1).position
        assert [message.id for message in store.feed.messages_like(["%needle%"], START, 10)] == [third, second, first]
        assert [message.id for message in store.feed.messages_like(["%needle%"], after_first, 10)] == [third, second]
        assert [message.id for message in store.feed.messages_like(["%needle%"], after_first, 1)] == [third]
        assert [message.id for message in store.feed.messages_like(["%部署%", "%zzz%"], START, 10)] == [second]
        assert [message.id for message in store.feed.messages_like(["%50\\%%"], START, 10)] == [first]

    def test_a_position_survives_as_text(self, store: SessionStore) -> None:
        """A follower stores it as text, and it compares and continues as before."""
        store.sessions.create_session("s", "cli", title="One")
        say(store, "s", "1", "2")
        head = store.feed.head()
        assert (Position.parse(str(head.message)), Position.parse(str(head.change))) == head
        assert head.message > START
        first = store.feed.messages_after(START, 1).position
        assert [message.content for message in store.feed.messages_after(Position.parse(str(first)), 5).messages] == [
            "2"
        ]

    def test_messages_of_a_session_end_at_a_position(self, store: SessionStore) -> None:
        """A follower that reads a session again gets nothing beyond its own position."""
        store.sessions.create_session("s", "cli")
        first, second = say(store, "s", "1", "2")
        until = store.feed.messages_after(START, 1).position
        assert [message.id for message in store.feed.messages_from("s", 0, until=until)] == [first]
        assert [message.id for message in store.feed.messages_from("s", 0, until=store.feed.head().message)] == [
            first,
            second,
        ]
        assert [message.id for message in store.feed.sample_messages(first, 5, until=until)] == [first]

    def test_many_ids_can_be_requested_at_once(self, store: SessionStore) -> None:
        """More than a database statement accepts as parameters."""
        store.sessions.create_session("s", "cli")
        ids = store.messages.append_messages("s", [{"role": "user", "content": str(number)} for number in range(1200)])
        assert len(store.feed.messages_by_id([*ids, *range(10_000, 45_000)])) == 1200
        assert store.feed.feed_sessions([*map(str, range(40_000)), "s"]).keys() == {"s"}
