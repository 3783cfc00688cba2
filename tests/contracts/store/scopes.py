"""Contract of scopes: a user reads only their own sessions, and cannot write to another user's."""

from collections.abc import Callable
from typing import Any

from memoranda.errors import SessionError, StorageError
from memoranda.memory.record.conversations import Conversation
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START
from tests.contracts.store.assertions import expect_refusal, say

ODD_USERS = (None, "ann", "bob", "%", "a' OR 1=1", "_", "ANN", "ann ")


def reads(view: SessionStore, session_id: str, message_id: int, title: str) -> dict[str, Callable[[], Any]]:
    """Every way to read, aimed at one session, message and title."""
    conversation = Conversation(session_id, (session_id,))
    return {
        "get_session": lambda: view.sessions.get_session(session_id),
        "resolve_session_id": lambda: view.sessions.resolve_session_id(session_id[:-1]) == session_id,
        "get_messages": lambda: view.messages.get_messages(session_id, include_inactive=True),
        "as_conversation": lambda: view.messages.get_messages_as_conversation(session_id, include_ancestors=True),
        "get_message": lambda: view.messages.get_message(message_id),
        "live_message_ids": lambda: sorted(view.messages.live_message_ids(session_id)),
        "get_session_title": lambda: view.titles.get_session_title(session_id),
        "resolve_by_title": lambda: view.titles.resolve_session_by_title(title),
        "list_titled": lambda: any(view.titles.list_titled(title)),
        "next_title": lambda: None if view.titles.get_next_title_in_lineage(title) == title else "numbered",
        "tip": lambda: view.lineage.get_compression_tip(session_id),
        "lineage": lambda: view.lineage.get_compression_lineage(session_id),
        "root": lambda: view.lineage.get_conversation_root(session_id),
        "ancestors": lambda: view.lineage.get_ancestors(session_id),
        "descendants": lambda: view.lineage.get_descendants(session_id),
        "export": lambda: view.transfer.export_session(session_id),
        "conversation_of": lambda: view.conversations.conversation_of(session_id),
        "window": lambda: view.conversations.window_around(message_id, 5),
        "behind": lambda: view.conversations.messages_behind(conversation, 0, 5).messages,
        "ends": lambda: any(view.conversations.ends_of(conversation, 5, outside=(10**9, 0), roles=("user",))),
        "last": lambda: view.conversations.last_messages([session_id], 5, ("user",))[0],
        "facts": lambda: view.conversations.facts_by_session([session_id]),
        "list": lambda: [row for row in view.listing.list_sessions_rich(limit=100) if row["id"] == session_id],
        "list_all": lambda: [
            row
            for row in view.listing.list_sessions_rich(
                limit=100, include_children=True, include_archived=True, order_by_last_active=True
            )
            if row["id"] == session_id
        ],
        "prune_candidates": lambda: [row for row in view.deletion.list_prune_candidates(-1) if row["id"] == session_id],
        "export_all": lambda: [row for row in view.transfer.export_all() if row["id"] == session_id],
    }


def writes(view: SessionStore, session_id: str, message_id: int) -> dict[str, Callable[[], Any]]:
    """Every way to write, aimed at one session and message."""
    return {
        "create": lambda: view.sessions.create_session(session_id, "cli", model="theirs"),
        "child": lambda: view.sessions.create_session("child", "cli", parent_session_id=session_id),
        "end": lambda: view.sessions.end_session(session_id, "x"),
        "reopen": lambda: view.sessions.reopen_session(session_id),
        "update": lambda: view.sessions.update_session(session_id, model="theirs"),
        "archive": lambda: view.sessions.set_session_archived(session_id, True),
        "append": lambda: view.messages.append_message(session_id, "user", "theirs"),
        "append_known": lambda: view.messages.append_message(session_id, "user", "theirs", external_id="known"),
        "append_none": lambda: view.messages.append_messages(session_id, []),
        "rewind": lambda: view.edits.rewind_to_message(session_id, message_id),
        "restore": lambda: view.edits.restore_rewound(session_id, 0),
        "compact": lambda: view.edits.archive_and_compact(session_id, []),
        "clear": lambda: view.edits.clear_messages(session_id),
        "redact": lambda: view.edits.redact_message(message_id),
        "title": lambda: view.titles.set_session_title(session_id, "theirs"),
        "tokens": lambda: view.usage.update_token_counts(session_id, input_tokens=5),
        "delete": lambda: view.deletion.delete_session(session_id),
        "delete_several": lambda: view.deletion.delete_sessions([session_id]),
        "prune": lambda: view.deletion.prune_sessions(-1),
        "import": lambda: (
            view.transfer.import_sessions(
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
    owners: dict[str | None, tuple[str, int]] = {}
    for number, user in enumerate(ODD_USERS):
        name = f"session-{number}"
        store.sessions.create_session(name, "cli", user_id=user, title=f"Title of {number}", started_at=1.0)
        owners[user] = (
            name,
            store.messages.append_message(name, "user", f"said {number}", timestamp=2.0, external_id="known"),
        )
        store.sessions.end_session(name, "user_exit")
    return owners


def _shows(ask: Callable[[], Any]) -> bool:
    """Whether a read returns anything; a refusal counts as nothing."""
    try:
        return bool(ask())
    except StorageError:
        return False


class ScopeContract:
    def test_no_read_leaves_its_scope(self, store: SessionStore) -> None:
        """Every read shows the user's own sessions; those of others seem not to exist."""
        owners = _fill(store)
        for owner, (session_id, message_id) in owners.items():
            title = store.titles.get_session_title(session_id)
            assert title is not None
            for user in ODD_USERS:
                questions = reads(store.scoped(Scope.of(user)), session_id, message_id, title)
                shown = {name for name, ask in questions.items() if _shows(ask)}
                expected = set(questions) if user == owner else set()
                assert shown == expected, (user, owner, shown ^ expected)

    def test_no_write_leaves_its_scope(self, store: SessionStore) -> None:
        """Whatever another user tries, a session and its messages do not change."""
        owners = _fill(store)
        before = {row["id"]: row for row in store.transfer.export_all()}
        for owner, (session_id, message_id) in owners.items():
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
        assert {row["id"]: row for row in store.transfer.export_all()} == before
        for user in ODD_USERS:
            left = store.listing.session_count()
            assert store.scoped(Scope.of(user)).deletion.prune_sessions(-1) == 1
            assert store.listing.session_count() == left - 1

    def test_counts_are_those_of_the_scope(self, store: SessionStore) -> None:
        """This is true for counts, statistics and exports."""
        owners = _fill(store)
        for user, (session_id, _) in owners.items():
            view = store.scoped(Scope.of(user))
            assert view.listing.session_count() == 1
            assert view.usage.statistics()["messages"] == 1
            assert [row["id"] for row in view.transfer.export_all()] == [session_id]
        assert store.listing.session_count() == len(ODD_USERS)

    def test_a_scoped_store_refuses_operations_on_the_whole_store(self, store: SessionStore) -> None:
        """These are metadata of the store, total counts, and repairs of counts."""
        (session_id, _) = _fill(store)["ann"]
        store.usage.set_meta("key", "value")
        view = store.scoped(Scope.of("bob"))
        questions: list[Callable[[], Any]] = [
            lambda: view.usage.get_meta("key"),
            lambda: view.usage.set_meta("store_id", "mine"),
            view.maintenance.miscounted_sessions,
            lambda: view.maintenance.recount_sessions([session_id]),
            view.maintenance.lost_repetitions,
            view.maintenance.give_up_lost_repetitions,
        ]
        for ask in questions:
            with expect_refusal("this"):
                ask()
        assert "redacted_secrets" not in view.usage.statistics()
        assert store.usage.statistics()["redacted_secrets"] == 0

    def test_others_sessions_and_unknown_ones_look_the_same(self, store: SessionStore) -> None:
        """A refusal does not reveal whether another user has a session with that id."""
        (session_id, message_id) = _fill(store)["ann"]
        view = store.scoped(Scope.of("bob"))

        def answers(name: str, number: int) -> dict[str, str]:
            found = {}
            for what, change in writes(view, name, number).items():
                if what in ("create", "import", "prune"):
                    # An id can be used only once, so every caller who requests it learns that it is in use.
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
        view.sessions.create_session("a", "cli")
        view.sessions.create_session("b", "cli", user_id="ann")
        with expect_refusal("bob"):
            view.sessions.create_session("c", "cli", user_id="bob")
        report = view.transfer.import_sessions(
            [{"id": "d", "source": "cli"}, {"id": "e", "source": "cli", "user_id": "bob"}]
        )
        assert [error["session_id"] for error in report.errors] == ["e"]
        assert {row["id"]: row["user_id"] for row in store.transfer.export_all()} == dict.fromkeys("abd", "ann")
        nameless = store.scoped(Scope.of(None))
        with expect_refusal("ann"):
            nameless.sessions.create_session("f", "cli", user_id="ann")

    def test_links_between_users_show_and_delete_nothing(self, store: SessionStore) -> None:
        """An operator may link sessions of two users; each of them still sees and changes only their own."""
        store.sessions.create_session("a", "cli", user_id="ann", title="Secret of ann", started_at=1.0)
        say(store, "a", "secret of ann")
        store.sessions.end_session("a", "compression")
        for name, kind in (("b", "compression"), ("h", "delegation"), ("x", "branch")):
            try:
                store.sessions.create_session(
                    name, "cli", user_id="bob", parent_session_id="a", relation=kind, started_at=2.0
                )
            except SessionError:
                # Refusing the link is one way to keep users apart.
                continue
            say(store, name, "secret of bob")
        for user, own, foreign in (("ann", ("a",), "secret of bob"), ("bob", ("b", "h", "x"), "secret of ann")):
            view = store.scoped(Scope.of(user))
            shown = ""
            for name in own:
                for ask in reads(view, name, 1, "Secret").values():
                    shown += repr(ask()).lower() if _shows(ask) else ""
            assert foreign not in shown
            ids = {
                row["id"]
                for name in own
                for row in [*view.lineage.get_ancestors(name), *view.lineage.get_descendants(name)]
            }
            ids |= {name for session_id in own for name in view.lineage.get_compression_lineage(session_id)}
            assert ids <= set(own)
        before = {row["id"] for row in store.transfer.export_all()}
        store.scoped(Scope.of("ann")).deletion.delete_session("a")
        assert {row["id"] for row in store.transfer.export_all()} == before - {"a"}

    def test_a_scoped_store_has_no_feed_of_other_users(self, store: SessionStore) -> None:
        """The feed has the messages of all users, so a scoped store refuses it or returns only the user's own."""
        owners = _fill(store)
        view = store.scoped(Scope.of("bob"))
        session_id, message_id = owners["ann"]
        questions: tuple[Callable[[], Any], ...] = (
            lambda: [
                message for message in view.feed.messages_after(START, 100).messages if message.session_id == session_id
            ],
            lambda: view.feed.messages_from(session_id, 0),
            lambda: view.feed.messages_by_id([message_id]),
            lambda: view.feed.messages_like(["%said 1%"], START, 100),
            lambda: view.feed.feed_sessions([session_id]),
            lambda: [change for change in view.feed.changes_after(START, 1000) if change.session_id == session_id],
        )
        assert [_shows(ask) for ask in questions] == [False] * len(questions)
