"""Contract of scopes: no read leaves a user's own sessions, and no write reaches another's."""

from collections.abc import Callable
from typing import Any

from memoranda.db.position import START
from memoranda.errors import SessionError, StorageError
from memoranda.sessions.conversations import Conversation
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore
from memoranda.testing.store_contract.assertions import refused, say

ODD_USERS = (None, "ann", "bob", "%", "a' OR 1=1", "_", "ANN", "ann ")


def reads(view: SessionStore, session_id: str, message_id: int, title: str) -> dict[str, Callable[[], Any]]:
    """Every way to read, aimed at one session, message and title."""
    place = Conversation(session_id, (session_id,))
    return {
        "get_session": lambda: view.get_session(session_id),
        "resolve_session_id": lambda: view.resolve_session_id(session_id[:-1]) == session_id,
        "get_messages": lambda: view.get_messages(session_id, include_inactive=True),
        "as_conversation": lambda: view.get_messages_as_conversation(session_id, include_ancestors=True),
        "get_message": lambda: view.get_message(message_id),
        "live_message_ids": lambda: sorted(view.live_message_ids(session_id)),
        "get_session_title": lambda: view.get_session_title(session_id),
        "resolve_by_title": lambda: view.resolve_session_by_title(title),
        "list_titled": lambda: any(view.list_titled(title)),
        "next_title": lambda: None if view.get_next_title_in_lineage(title) == title else "numbered",
        "tip": lambda: view.get_compression_tip(session_id),
        "lineage": lambda: view.get_compression_lineage(session_id),
        "root": lambda: view.get_conversation_root(session_id),
        "ancestors": lambda: view.get_ancestors(session_id),
        "descendants": lambda: view.get_descendants(session_id),
        "export": lambda: view.export_session(session_id),
        "conversation_of": lambda: view.conversation_of(session_id),
        "window": lambda: view.window_around(message_id, 5),
        "behind": lambda: view.messages_behind(place, 0, 5).messages,
        "ends": lambda: any(view.ends_of(place, 5, outside=(10**9, 0), roles=("user",))),
        "list": lambda: [row for row in view.list_sessions_rich(limit=100) if row["id"] == session_id],
        "list_all": lambda: [
            row
            for row in view.list_sessions_rich(
                limit=100, include_children=True, include_archived=True, order_by_last_active=True
            )
            if row["id"] == session_id
        ],
        "prune_candidates": lambda: [row for row in view.list_prune_candidates(-1) if row["id"] == session_id],
        "export_all": lambda: [row for row in view.export_all() if row["id"] == session_id],
    }


def writes(view: SessionStore, session_id: str, message_id: int) -> dict[str, Callable[[], Any]]:
    """Every way to write, aimed at one session and message."""
    return {
        "create": lambda: view.create_session(session_id, "cli", model="theirs"),
        "child": lambda: view.create_session("child", "cli", parent_session_id=session_id),
        "end": lambda: view.end_session(session_id, "x"),
        "reopen": lambda: view.reopen_session(session_id),
        "update": lambda: view.update_session(session_id, model="theirs"),
        "archive": lambda: view.set_session_archived(session_id, True),
        "append": lambda: view.append_message(session_id, "user", "theirs"),
        "append_known": lambda: view.append_message(session_id, "user", "theirs", external_id="known"),
        "append_none": lambda: view.append_messages(session_id, []),
        "rewind": lambda: view.rewind_to_message(session_id, message_id),
        "restore": lambda: view.restore_rewound(session_id, 0),
        "compact": lambda: view.archive_and_compact(session_id, []),
        "clear": lambda: view.clear_messages(session_id),
        "redact": lambda: view.redact_message(message_id),
        "title": lambda: view.set_session_title(session_id, "theirs"),
        "tokens": lambda: view.update_token_counts(session_id, input_tokens=5),
        "delete": lambda: view.delete_session(session_id),
        "delete_several": lambda: view.delete_sessions([session_id]),
        "prune": lambda: view.prune_sessions(-1),
        "import": lambda: (
            view.import_sessions(
                [
                    {
                        "id": session_id,
                        "source": "cli",
                        "messages": [{"role": "user", "content": "theirs", "timestamp": 1}],
                    }
                ]
            ).messages
        ),
    }


def _fill(store: SessionStore) -> dict[str | None, tuple[str, int]]:
    made: dict[str | None, tuple[str, int]] = {}
    for place, user in enumerate(ODD_USERS):
        name = f"session-{place}"
        store.create_session(name, "cli", user_id=user, title=f"Title of {place}", started_at=1.0)
        made[user] = name, store.append_message(name, "user", f"said {place}", timestamp=2.0, external_id="known")
        store.end_session(name, "user_exit")
    return made


def _shows(ask: Callable[[], Any]) -> bool:
    """Whether a read gives anything; being refused is giving nothing."""
    try:
        return bool(ask())
    except StorageError:
        return False


class ScopeContract:
    def test_no_read_leaves_its_scope(self, store: SessionStore) -> None:
        """Own sessions are shown by every read; others' are as if they did not exist."""
        made = _fill(store)
        for owner, (session_id, message_id) in made.items():
            title = store.get_session_title(session_id)
            assert title is not None
            for user in ODD_USERS:
                questions = reads(store.scoped(Scope.of(user)), session_id, message_id, title)
                shown = {name for name, ask in questions.items() if _shows(ask)}
                expected = set(questions) if user == owner else set()
                assert shown == expected, (user, owner, shown ^ expected)

    def test_no_write_leaves_its_scope(self, store: SessionStore) -> None:
        """Whatever another user tries, a session and its messages stay as they are."""
        made = _fill(store)
        before = {row["id"]: row for row in store.export_all()}
        for owner, (session_id, message_id) in made.items():
            for user in ODD_USERS:
                if user == owner:
                    continue
                for name, change in writes(store.scoped(Scope.of(user)), session_id, message_id).items():
                    if name == "prune":
                        continue
                    try:
                        answer = change()
                    except SessionError:
                        answer = None
                    assert not answer, (user, owner, name, answer)
        assert {row["id"]: row for row in store.export_all()} == before
        for user in ODD_USERS:
            left = store.session_count()
            assert store.scoped(Scope.of(user)).prune_sessions(-1) == 1
            assert store.session_count() == left - 1

    def test_numbers_are_those_of_the_scope(self, store: SessionStore) -> None:
        """Counts, statistics and exports."""
        made = _fill(store)
        for user, (session_id, _) in made.items():
            view = store.scoped(Scope.of(user))
            assert view.session_count() == 1
            assert view.statistics()["messages"] == 1
            assert [row["id"] for row in view.export_all()] == [session_id]
        assert store.session_count() == len(ODD_USERS)

    def test_what_is_the_whole_stores_is_not_one_users(self, store: SessionStore) -> None:
        """Facts about the store, counts of everything, and putting them right."""
        (session_id, _) = _fill(store)["ann"]
        store.set_meta("key", "value")
        view = store.scoped(Scope.of("bob"))
        asked: list[Callable[[], Any]] = [
            lambda: view.get_meta("key"), lambda: view.set_meta("store_id", "mine"), view.miscounted_sessions,
            lambda: view.recount_sessions([session_id]), view.lost_repetitions, view.give_up_lost_repetitions,
        ]  # fmt: skip
        for ask in asked:
            with refused("this"):
                ask()
        assert "redacted_secrets" not in view.statistics()
        assert store.statistics()["redacted_secrets"] == 0

    def test_others_sessions_and_unknown_ones_look_the_same(self, store: SessionStore) -> None:
        """A refusal does not tell whether somebody else has such a session."""
        (session_id, message_id) = _fill(store)["ann"]
        view = store.scoped(Scope.of("bob"))

        def answers(name: str, number: int) -> dict[str, str]:
            found = {}
            for what, change in writes(view, name, number).items():
                if what in ("create", "import", "prune"):
                    # An id can be taken only once, so whoever asks for it learns that it is.
                    continue
                try:
                    found[what] = repr(change())
                except SessionError as error:
                    found[what] = str(error).replace(name, "…").replace(str(number), "…")
            return found

        assert answers(session_id, message_id) == answers("session-x", 999)

    def test_a_scoped_store_writes_for_its_user(self, store: SessionStore) -> None:
        """What it creates or imports is the user's own; another's name is refused."""
        view = store.scoped(Scope.of("ann"))
        view.create_session("a", "cli")
        view.create_session("b", "cli", user_id="ann")
        with refused("bob"):
            view.create_session("c", "cli", user_id="bob")
        report = view.import_sessions([{"id": "d", "source": "cli"}, {"id": "e", "source": "cli", "user_id": "bob"}])
        assert [error["session_id"] for error in report.errors] == ["e"]
        assert {row["id"]: row["user_id"] for row in store.export_all()} == dict.fromkeys("abd", "ann")
        nameless = store.scoped(Scope.of(None))
        with refused("ann"):
            nameless.create_session("f", "cli", user_id="ann")

    def test_links_between_users_show_and_delete_nothing(self, store: SessionStore) -> None:
        """An operator may link sessions of two users; each of them still sees and changes only their own."""
        store.create_session("a", "cli", user_id="ann", title="Secret of ann", started_at=1.0)
        say(store, "a", "secret of ann")
        store.end_session("a", "compression")
        for name, kind in (("b", "compression"), ("h", "delegation"), ("x", "branch")):
            try:
                store.create_session(name, "cli", user_id="bob", parent_session_id="a", relation=kind, started_at=2.0)
            except SessionError:
                # Refusing such a link is one way to keep users apart.
                continue
            say(store, name, "secret of bob")
        for user, own, foreign in (("ann", ("a",), "secret of bob"), ("bob", ("b", "h", "x"), "secret of ann")):
            view = store.scoped(Scope.of(user))
            shown = ""
            for name in own:
                for ask in reads(view, name, 1, "Secret").values():
                    shown += repr(ask()).lower() if _shows(ask) else ""
            assert foreign not in shown
            ids = {row["id"] for name in own for row in [*view.get_ancestors(name), *view.get_descendants(name)]}
            ids |= {name for each in own for name in view.get_compression_lineage(each)}
            assert ids <= set(own)
        before = {row["id"] for row in store.export_all()}
        store.scoped(Scope.of("ann")).delete_session("a")
        assert {row["id"] for row in store.export_all()} == before - {"a"}

    def test_a_scoped_store_is_no_feed(self, store: SessionStore) -> None:
        """What followers read is everybody's, so a user's view refuses it or keeps to the user's own."""
        made = _fill(store)
        view = store.scoped(Scope.of("bob"))
        session_id, message_id = made["ann"]
        questions: tuple[Callable[[], Any], ...] = (
            lambda: [
                message for message in view.messages_after(START, 100).messages if message.session_id == session_id
            ],
            lambda: view.messages_from(session_id, 0),
            lambda: view.messages_by_id([message_id]),
            lambda: view.messages_like(["%said 1%"], START, 100),
            lambda: view.feed_sessions([session_id]),
            lambda: [change for change in view.changes_after(START, 1000) if change.session_id == session_id],
        )
        assert [_shows(ask) for ask in questions] == [False] * len(questions)
