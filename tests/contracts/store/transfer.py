"""Contract of export and import: an equal store, no duplicates, and nothing lost because of one bad session."""

import json
import time
from typing import Any

from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import chain, compact, contents, findable, say
from tests.contracts.store.messages import FULL

_NUMBERS = ("id", "copy_of")


def store_content(store: SessionStore) -> list[dict[str, Any]]:
    """Everything in a store except message ids, which differ between stores."""
    sessions = []
    for session in store.transfer.export_all():
        indexes = {row["id"]: index for index, row in enumerate(session["messages"])}
        messages = [
            {name: value for name, value in row.items() if name not in _NUMBERS}
            | {"copy_of": None if row["copy_of"] is None else indexes.get(row["copy_of"], "elsewhere")}
            for row in session["messages"]
        ]
        sessions.append(session | {"messages": messages})
    return sorted(sessions, key=lambda session: str(session["id"]))


class TransferContract:
    def test_export_then_import_gives_the_same_store(self, store: SessionStore, other: SessionStore) -> None:
        """Chains, branches, titles, counters, costs, compressed messages and copies survive, even as JSON text."""
        chain(store, "a", "b", "c", user_id="ann")
        store.titles.set_session_title("c", "Chain")
        store.sessions.create_session(
            "h", "subagent", parent_session_id="a", user_id="ann", cwd="/é", model_config={"x": [1]}
        )
        store.messages.append_message("h", **FULL, own={"field": "kept"})
        store.sessions.create_session("x", "cli", parent_session_id="b", relation="branch", title="Branch")
        say(store, "x", "1", "2", "3")
        compact(store, "x", 2)
        store.usage.update_token_counts("x", input_tokens=5, actual_cost_usd=0.5, model="m", billing_mode="b")
        store.sessions.update_session("x", system_prompt="prompt")
        store.sessions.set_session_archived("x", True)
        exported = json.loads(json.dumps(store.transfer.export_all()))
        report = other.transfer.import_sessions(exported)
        assert report.ok
        assert sorted(report.imported) == ["a", "b", "c", "h", "x"]
        assert report.messages == 10
        assert store_content(other) == store_content(store)
        assert findable(other) == findable(store)
        assert other.lineage.get_compression_lineage("a") == ["a", "b", "c"]
        assert contents(other, "x") == contents(store, "x")

    def test_one_session_can_be_exported(self, store: SessionStore) -> None:
        """It has all its columns and messages, including those that were compressed away, but no rewound ones."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2", "3")
        store.edits.rewind_to_message("s", ids[2])
        compact(store, "s", 1)
        data = store.transfer.export_session("s")
        session = store.sessions.get_session("s")
        assert data is not None and session is not None
        assert data == session | {"messages": store.messages.get_messages("s", include_inactive=True)}
        assert [row["content"] for row in data["messages"]][:2] == ["1", "2"]
        assert "3" not in [row["content"] for row in data["messages"]]

    def test_exports_can_be_limited_to_a_source(self, store: SessionStore) -> None:
        """All at once or one by one."""
        store.sessions.create_session("a", "cli")
        store.sessions.create_session("b", "cron")
        assert [row["id"] for row in store.transfer.export_all(source="cli")] == ["a"]
        assert [row["id"] for row in store.transfer.iter_export("cron")] == ["b"]

    def test_importing_twice_adds_nothing(self, store: SessionStore, other: SessionStore) -> None:
        """Not even for equal messages of one session; the report lists the session as skipped."""
        store.sessions.create_session("s", "cli", title="T")
        for _ in range(3):
            store.messages.append_message("s", "user", "again", timestamp=5.0)
        store.messages.append_message("s", **FULL)
        other.transfer.import_sessions(store.transfer.export_all())
        before, head = store_content(other), other.feed.head()
        report = other.transfer.import_sessions(store.transfer.export_all())
        assert (report.imported, report.updated, report.skipped, report.messages) == ([], [], ["s"], 0)
        assert store_content(other) == before
        assert other.feed.head() == head
        assert store.transfer.import_sessions(store.transfer.export_all()).messages == 0

    def test_importing_copies_twice_adds_nothing(self, store: SessionStore, other: SessionStore) -> None:
        """A message with an external id is not mistaken for its own copy, which has none."""
        store.sessions.create_session("s", "cli")
        store.messages.append_message("s", "user", "x", external_id="e", timestamp=5.0)
        compact(store, "s", 1)
        assert other.transfer.import_sessions(store.transfer.export_all()).messages == 3
        assert other.transfer.import_sessions(store.transfer.export_all()).messages == 0
        assert store_content(other) == store_content(store)

    def test_importing_messages_without_time_or_id_twice_adds_nothing(self, store: SessionStore) -> None:
        """They are recognised by their content and how often it occurs."""
        session = {
            "id": "s", "source": "x",
            "messages": [{"role": "user", "content": text} for text in ("ok", "ok", "fine")],
        }  # fmt: skip
        assert store.transfer.import_sessions([session]).messages == 3
        assert store.transfer.import_sessions([session]).messages == 0
        assert contents(store, "s") == ["ok", "ok", "fine"]

    def test_a_session_without_any_time_is_dated_now(self, store: SessionStore) -> None:
        """At its first import, and again when messages with times are added; existing messages do not change."""
        before = time.time()
        plain = {"role": "user", "content": "when?"}
        assert store.transfer.import_sessions([{"id": "s", "source": "x", "messages": [plain]}]).undated == ["s"]
        (message,) = store.messages.get_messages("s")
        assert before <= message["timestamp"] <= time.time()
        timed = [plain, plain | {"timestamp": 5.0}]
        report = store.transfer.import_sessions([{"id": "s", "source": "x", "messages": timed}])
        assert (report.messages, report.undated) == (1, [])
        assert store.transfer.import_sessions([{"id": "t", "source": "x", "messages": timed}]).undated == []
        assert [message["timestamp"] for message in store.messages.get_messages("t")] == [5.0, 5.0]
        report = store.transfer.import_sessions(
            [{"id": "u", "source": "x", "messages": [plain, {"content": "no role"}]}]
        )
        assert (report.undated, len(report.errors)) == ([], 1)

    def test_a_session_that_has_grown_gets_what_is_new(self, store: SessionStore, other: SessionStore) -> None:
        """Only the new messages, in order."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "1", "2")
        other.transfer.import_sessions(store.transfer.export_all())
        say(store, "s", "3", "4")
        report = other.transfer.import_sessions(store.transfer.export_all())
        assert (report.updated, report.messages) == (["s"], 2)
        assert store_content(other) == store_content(store)

    def test_a_session_that_was_compressed_since_is_compressed_here_too(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        """Old turns do not stay in the context next to their summary."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "1", "2", "3")
        other.transfer.import_sessions(store.transfer.export_all())
        compact(store, "s", 1)
        other.transfer.import_sessions(store.transfer.export_all())
        assert contents(other, "s") == contents(store, "s")
        assert store_content(other) == store_content(store)

    def test_an_import_does_not_restore_rewound_messages(self, store: SessionStore, other: SessionStore) -> None:
        """An import recognises messages that views no longer show."""
        store.sessions.create_session("s", "cli")
        ids = say(store, "s", "1", "2")
        other.transfer.import_sessions(store.transfer.export_all())
        exported = store.transfer.export_all()
        store.edits.rewind_to_message("s", ids[1])
        assert store.transfer.import_sessions(exported).messages == 0
        assert contents(store, "s") == ["1"]

    def test_messages_with_different_external_ids_are_different(self, store: SessionStore) -> None:
        """Even with the same text and timestamp; with the same id they are one."""
        message = {"role": "user", "content": "ok", "timestamp": 5.0}
        session = {"id": "s", "source": "x"}
        store.transfer.import_sessions([session | {"messages": [message | {"external_id": "1"}]}])
        report = store.transfer.import_sessions(
            [session | {"messages": [message | {"external_id": "2"}, message | {"external_id": "1", "content": "no"}]}]
        )
        assert report.messages == 1
        assert contents(store, "s") == ["ok", "ok"]

    def test_a_taken_title_gets_a_number(self, store: SessionStore) -> None:
        """No session is refused because of its title, and the report names the new one."""
        store.sessions.create_session("a", "cli", title="Plan")
        store.sessions.create_session("b", "cli", title="x" * 100)
        report = store.transfer.import_sessions(
            [
                {"id": "c", "source": "x", "title": "Plan"},
                {"id": "d", "source": "x", "title": "x" * 100},
                {"id": "e", "source": "x", "title": "y" * 300},
                {"id": "f", "source": "x", "title": "\u200b"},
            ]
        )
        assert report.ok
        assert report.renamed["c"] == store.titles.get_session_title("c") == "Plan #2"
        titles = {name: store.titles.get_session_title(name) for name in "abcdef"}
        assert len(set(titles.values())) == 6
        assert titles["f"] is None
        assert report.renamed.keys() == {"c", "d", "e"}

    def test_a_missing_parent_detaches_a_session(self, store: SessionStore) -> None:
        """It is imported anyway; a parent that follows later in the same import is linked."""
        report = store.transfer.import_sessions(
            [
                {"id": "orphan", "source": "x", "parent_session_id": "missing", "relation": "branch"},
                {"id": "child", "source": "x", "parent_session_id": "parent", "relation": "compression"},
                {"id": "parent", "source": "x"},
            ]
        )
        assert report.detached == ["orphan"]
        assert store.lineage.get_compression_lineage("child") == ["parent", "child"]
        assert store.lineage.get_conversation_root("orphan") == "orphan"

    def test_a_cycle_of_parents_is_broken(self, store: SessionStore) -> None:
        """One of the sessions loses its parent."""
        circle = [{"id": a, "source": "x", "parent_session_id": b} for a, b in ("ab", "bc", "ca", "ss")]
        report = store.transfer.import_sessions(circle)
        assert sorted(report.imported) == ["a", "b", "c", "s"]
        assert len(store.lineage.get_ancestors("a")) <= 3
        assert store.lineage.get_ancestors("s") == [{"id": "s", "title": None, "relation": None}]
        assert len(store.listing.list_sessions_rich()) >= 1

    def test_a_broken_session_is_reported_and_the_others_are_imported(self, store: SessionStore) -> None:
        """Whatever is wrong with it, nothing of it is stored."""
        good = {"id": "good", "source": "x", "messages": [{"role": "user", "content": "hi"}]}
        ok = {"role": "user", "content": "hi"}
        broken: list[Any] = [
            None, 5, "text", [], {}, {"id": "b"}, {"id": 5, "source": "x"}, {"id": "b", "source": ""},
            {"id": "b", "source": "x", "messages": "text"}, {"id": "b", "source": "x", "messages": [ok, "text"]},
            {"id": "b", "source": "x", "messages": [ok, {"content": "no role"}]},
            {"id": "b", "source": "x", "started_at": "yesterday"},
            {"id": "b", "source": "x", "messages": [ok | {"timestamp": "x"}]},
            {"id": "b", "source": "x", "title": 5}, {"id": "b", "source": "x", "user_id": {}},
        ]  # fmt: skip
        for number, session in enumerate(broken):
            one = good | {"id": f"good {number}"}
            report = store.transfer.import_sessions([session, one])
            assert report.imported == [one["id"]], session
            assert [error["index"] for error in report.errors] == [0]
            assert report.errors[0]["error"]
        assert store.sessions.get_session("b") is None

    def test_values_that_no_database_stores_are_reported(self, store: SessionStore) -> None:
        """The report names the session, and contains no error of the database."""
        ok: dict[str, Any] = {"role": "user", "content": "hi"}
        broken: list[dict[str, Any]] = [
            {"ended_at": [1]}, {"input_tokens": 10**30}, {"started_at": 10**400}, {"id": "\ud800"},
            {"user_id": "\ud800"}, {"messages": [ok | {"timestamp": "x"}, ok | {"timestamp": 5}]},
            {"messages": [ok | {"id": [1]}, ok | {"copy_of": [1]}]}, {"messages": [ok | {"copy_of": {}}]},
            {"id": "x" * 201}, {"user_id": ""},
        ]  # fmt: skip
        for number, wrong in enumerate(broken):
            one = {"id": f"good {number}", "source": "x"}
            report = store.transfer.import_sessions([{"id": "b", "source": "x", **wrong}, one])
            assert one["id"] in report.imported
            assert len(report.errors) + len(report.imported) == 2
            if "b" in report.imported:
                store.deletion.delete_session("b")

    def test_an_imported_number_is_a_number(self, store: SessionStore) -> None:
        """Text instead of a number is reported or counts as zero; sums work."""
        store.transfer.import_sessions(
            [
                {"id": "a", "source": "x", "input_tokens": "abc"},
                {"id": "b", "source": "x", "archived": "x", "rewind_count": "no"},
                {"id": "c", "source": "x", "input_tokens": 5},
            ]
        )
        assert store.usage.statistics()["input_tokens"] == 5
        store.usage.update_token_counts("c", input_tokens=1)
        for row in store.transfer.export_all():
            assert all(isinstance(row[name], int) for name in ("input_tokens", "archived", "rewind_count"))

    def test_a_copy_of_a_session_that_was_not_imported_can_be_found(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        """A continuation that is imported without its parent has the only record of what it copies."""
        store.sessions.create_session("a", "cli")
        number = store.messages.append_message("a", "user", "a fact")
        store.sessions.end_session("a", "compression")
        store.sessions.create_session("b", "cli", parent_session_id="a")
        store.messages.append_message("b", "user", "a fact", copy_of=number)
        whole = store.transfer.export_all()
        exported = store.transfer.export_session("b")
        assert exported is not None
        other.transfer.import_sessions([exported])
        assert findable(other) == ["a fact"]
        store.deletion.delete_session("b")
        store.deletion.delete_session("a")
        store.transfer.import_sessions(whole)
        assert findable(store) == ["a fact"]

    def test_fields_that_became_known_later_are_imported_with_new_messages(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        """Title, end and counts are filled if they are empty; a session that continued in this store does not end."""
        store.sessions.create_session("s", "cli")
        say(store, "s", "one")
        other.transfer.import_sessions(store.transfer.export_all())
        store.titles.set_session_title("s", "Named later")
        store.usage.update_token_counts("s", input_tokens=10, model="m")
        store.sessions.end_session("s", "done")
        exported = store.transfer.export_all()
        assert other.transfer.import_sessions(exported).updated == ["s"]
        names = ("title", "ended_at", "end_reason", "input_tokens", "model")
        ours, theirs = store.sessions.get_session("s"), other.sessions.get_session("s")
        assert ours is not None and theirs is not None
        assert [theirs[name] for name in names] == [ours[name] for name in names]
        assert other.transfer.import_sessions(exported).skipped == ["s"]
        other.sessions.reopen_session("s")
        other.titles.set_session_title("s", "Mine")
        say(other, "s", "two")
        other.transfer.import_sessions(exported)
        kept = other.sessions.get_session("s")
        assert kept is not None
        assert (kept["title"], kept["ended_at"]) == ("Mine", None)

    def test_an_import_does_not_restore_redacted_messages(self, store: SessionStore) -> None:
        """The import is an earlier export with messages without external ids."""
        store.sessions.create_session("s", "cli")
        (message, _) = say(store, "s", "a secret", "other words")
        before = store.transfer.export_all()
        store.edits.redact_message(message)
        assert store.transfer.import_sessions(before).messages == 0
        assert contents(store, "s") == ["[redacted]", "other words"]
        assert store.messages.get_messages_as_conversation("s")[0] == {"role": "user", "content": "[redacted]"}

    def test_a_copy_may_precede_its_original(self, store: SessionStore, other: SessionStore) -> None:
        """It is found and counted once, in both stores."""
        original = {"id": 7, "role": "user", "content": "all of it"}
        copy = {"id": 3, "role": "user", "content": "shortened", "copy_of": 7}
        sessions = [
            {"id": "a", "source": "cli", "messages": [copy]},
            {"id": "b", "source": "cli", "messages": [original]},
        ]
        store.transfer.import_sessions(sessions)
        other.transfer.import_sessions(store.transfer.export_all())
        for either_store in (store, other):
            assert findable(either_store) == ["all of it"]
            assert not either_store.maintenance.miscounted_sessions()

    def test_progress_is_reported(self, store: SessionStore) -> None:
        """It is reported after every session."""
        steps: list[int] = []
        store.transfer.import_sessions(
            ({"id": str(number), "source": "x"} for number in range(3)), progress=steps.append
        )
        assert steps == [1, 2, 3]
