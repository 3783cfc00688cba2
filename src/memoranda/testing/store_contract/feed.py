"""Contract of the feed: a follower that asks what is new ends up with exactly what can be found."""

from memoranda.sessions.feed import FeedMessage
from memoranda.sessions.store import SessionStore
from memoranda.testing.store_contract.assertions import compact, say


class Follower:
    """Keeps a copy of what can be found, only by asking what is new."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._message = self._change = 0
        self.found: dict[int, FeedMessage] = {}
        self.titles: dict[str, str | None] = {}

    def catch_up(self) -> None:
        head = self._store.head()
        while new := self._store.messages_after(self._message, 2):
            self.found |= {message.id: message for message in new}
            self._message = new[-1].id
            self._know(new[-1].session_id, *(message.session_id for message in new))
        while changes := self._store.changes_after(self._change, 2):
            for change in changes:
                self._change = change.seq
                self._look_again(change.session_id, change.from_message)
        assert self._store.head() == head

    def _know(self, *session_ids: str) -> None:
        there = self._store.feed_sessions(session_ids)
        self.titles |= {name: session.title for name, session in there.items()}

    def _look_again(self, session_id: str, first: int | None) -> None:
        if first is None and not self._store.feed_sessions([session_id]):
            self.titles.pop(session_id, None)
            first = 0
        if first is not None:
            kept = {
                number: message
                for number, message in self.found.items()
                if message.session_id != session_id or number < first
            }
            self.found = kept | {each.id: each for each in self._store.messages_from(session_id, first)}
        self._know(session_id)


class FeedContract:
    def test_a_store_has_a_name_of_its_own(self, store: SessionStore, other: SessionStore) -> None:
        """The same each time, and no other store's."""
        assert store.store_id() == store.store_id() != other.store_id()

    def test_the_head_moves_with_every_append_and_change(self, store: SessionStore) -> None:
        """Appending moves the message, everything else the change."""
        assert store.head() == (0, 0)
        store.create_session("s", "cli")
        before = store.head()
        (number,) = say(store, "s", "x")
        assert store.head() == (number, before.change)
        store.set_session_title("s", "T")
        assert store.head().change > before.change
        assert store.head().message == number

    def test_a_follower_finds_what_can_be_found(self, store: SessionStore) -> None:
        """After every kind of change, asking only for what is new."""
        follower = Follower(store)
        store.create_session("s", "cli", title="One")
        store.create_session("t", "cli")
        ids: list[int] = []
        steps = (
            lambda: ids.extend(say(store, "s", "1", "2", "3")),
            lambda: ids.extend(say(store, "t", "4")),
            lambda: store.rewind_to_message("s", ids[1]),
            lambda: store.restore_rewound("s", ids[1]),
            lambda: store.redact_message(ids[0]),
            lambda: compact(store, "s", 1),
            lambda: store.set_session_title("t", "Two"),
            lambda: store.set_session_archived("t", True),
            lambda: store.delete_session("s"),
            lambda: ids.extend(say(store, "t", "5")),
            lambda: store.clear_messages("t"),
        )
        for step in steps:
            step()
            follower.catch_up()
            found = {message.id: message for message in store.messages_after(0, 1000)}
            assert follower.found == found
            assert store.messages_by_id([*ids, 10**6]) == {number: found[number] for number in ids if number in found}
            assert follower.titles == {
                row["id"]: row["title"] for row in store.export_all() if row["id"] in follower.titles
            }
            follower.catch_up()
        assert follower.titles == {"t": "Two"}

    def test_a_message_in_the_feed_is_decoded(self, store: SessionStore) -> None:
        """Text or structure, and calls as they were made."""
        store.create_session("s", "cli", user_id="u", started_at=5.0)
        calls = [{"id": "c", "function": {"name": "ls", "arguments": '{"p": "é"}'}}]
        number = store.append_message(
            "s", "assistant", [{"type": "text", "text": "部"}], tool_calls=calls, tool_name="n", timestamp=7.5
        )
        expected = FeedMessage(number, "s", "assistant", [{"type": "text", "text": "部"}], "n", calls, 7.5, False)
        assert store.messages_after(0, 5) == store.messages_from("s", number) == [expected]
        session = store.feed_sessions(["s", "nobody"])["s"]
        assert (session.user_id, session.source, session.started_at, session.title) == ("u", "cli", 5.0, None)
        assert (session.conversation_id, bool(session.archived)) == ("s", False)

    def test_a_scan_finds_patterns_where_words_are(self, store: SessionStore) -> None:
        """In content, calls and tool names, newest first, behind a message; case does not matter for ASCII."""
        store.create_session("s", "cli")
        first = store.append_message("s", "user", "Needle 50%")
        second = store.append_message("s", "assistant", None, tool_calls=[{"function": {"arguments": "部署needle"}}])
        third = store.append_message("s", "tool", "x", tool_name="needle_tool")
        store.append_message("s", "user", "nothing 500")
        assert [each.id for each in store.messages_like(["%needle%"], 0, 10)] == [third, second, first]
        assert [each.id for each in store.messages_like(["%needle%"], first, 1)] == [third]
        assert [each.id for each in store.messages_like(["%部署%", "%zzz%"], 0, 10)] == [second]
        assert [each.id for each in store.messages_like(["%50\\%%"], 0, 10)] == [first]

    def test_many_ids_can_be_asked_for_at_once(self, store: SessionStore) -> None:
        """More than a statement takes as values."""
        store.create_session("s", "cli")
        ids = store.append_messages("s", [{"role": "user", "content": str(each)} for each in range(1200)])
        assert len(store.messages_by_id([*ids, *range(10_000, 45_000)])) == 1200
        assert store.feed_sessions([*(str(each) for each in range(40_000)), "s"]).keys() == {"s"}
