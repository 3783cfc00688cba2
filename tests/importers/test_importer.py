"""The importer plans and writes what a reader yields, once, and nothing is lost silently."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import CorruptStoreError
from memoranda.importers import item_import
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    Skipped,
)
from memoranda.importers.summary import ImportSummary
from memoranda.memory.record.scope import Scope
from memoranda.storage.home_database import FILE_NAME
from memoranda.storage.sqlite.database import Database
from memoranda.support import home as support_home
from memoranda.upkeep.doctor import accept_store
from tests.importers.import_home import Home, ListReader

pytestmark = pytest.mark.slow


def said(name: str, text: str = "hello", **fields: Any) -> ImportedMessage:
    return ImportedMessage({"role": "user", "content": text, "external_id": name, "timestamp": 100.0, **fields}, 7)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_session_is_imported_with_all_its_fields(home: Home) -> None:
    """Its row names the program, the program's own id and directory; its messages are unchanged."""
    given = ImportedConversation(
        "abc", "Fixing it", "some-model", "/work", 50.0, extra={"branch": "main", "title": "theirs"}
    )
    summary = home.take(ListReader(given, said("1"), said("2", "again", timestamp=101.5)))
    row = home.everything()["recited-abc"]
    assert (row["source"], row["title"], row["model"], row["started_at"]) == (
        "recited",
        "Fixing it",
        "some-model",
        50.0,
    )
    assert (row["host"], row["host_session_id"], row["directory"]) == ("recited", "abc", "/work")
    # A fact that has the name of one of our columns is kept under another one.
    assert (row["branch"], row["host_title"]) == ("main", "theirs")
    assert [(each["content"], each["timestamp"], each["external_id"]) for each in row["messages"]] == [
        ("hello", 100.0, "1"), ("again", 101.5, "2")
    ]  # fmt: skip
    assert (summary.count("new"), summary.messages) == (1, 2)


def test_a_new_session_is_two_commits_of_the_record(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is created with its title and its end in one, and its messages are the other: each waits for the disk."""
    commits: list[str] = []
    commit = Database.commit

    def counted(database: Database, *rest: Any) -> None:
        commits.append(database.path.name)
        commit(database, *rest)

    monkeypatch.setattr(Database, "commit", counted)
    home.take(ListReader(ImportedConversation("abc", "Fixing it"), said("1")))
    row = home.everything()["recited-abc"]
    assert (row["title"], row["ended_at"], row["end_reason"]) == ("Fixing it", 100.0, "imported")
    assert commits.count("state.db") == 2


def test_a_preview_writes_nothing_at_all(tmp_path: Path) -> None:
    """Not even a file in the home; and its figures are those of the import."""
    home, reader = (
        Home(tmp_path / "home"),
        ListReader(ImportedConversation("a"), said("1"), said("1"), said("2"), Skipped("noise")),
    )
    planned = home.plan(reader)
    assert not (home.root / FILE_NAME).exists()
    assert home.everything() == {}
    assert planned.as_json() == home.take(reader).as_json()
    assert (planned.messages, planned.messages_known, planned.skipped) == (2, 1, {"noise": 1})


def test_an_unchanged_item_is_not_read_again(home: Home) -> None:
    """The second time, its sessions are unchanged without a look into it."""
    item = ImportItem(Path("same"), 10, 5.0, "x")
    home.take(ListReader(ImportedConversation("a"), said("1"), items=[item]))
    second = home.take(ListReader(ImportedConversation("a"), said("2"), items=[item]))
    assert (second.items_unchanged, second.messages, second.count("unchanged")) == (1, 0, 1)


def test_a_session_that_has_grown_gets_what_is_new(home: Home) -> None:
    """And nothing twice, although everything was read again."""
    home.take(ListReader(ImportedConversation("a"), said("1")))
    grown = home.take(
        ListReader(
            ImportedConversation("a"), said("1"), said("2"), items=[ImportItem(Path("recited"), 2, 2.0, "recital")]
        )
    )
    assert (grown.count("grown"), grown.messages, grown.messages_known) == (1, 1, 1)
    assert [each["external_id"] for each in home.messages("recited-a")] == ["1", "2"]


def test_without_import_state_everything_is_read_again_and_nothing_added(home: Home) -> None:
    """The record itself knows its messages."""
    reader = ListReader(ImportedConversation("a", "Title"), said("1"), said("2"))
    home.take(reader)
    before = home.everything()
    for file in home.root.glob(f"{FILE_NAME}*"):
        file.unlink()
    rescan = home.take(reader)
    assert (rescan.items_unchanged, rescan.messages, rescan.messages_known) == (0, 0, 2)
    assert home.everything() == before


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_nothing_is_imported_while_the_import_state_is_damaged(home: Home, content: bytes) -> None:
    """A preview reads everything; an import says that the file is damaged, because others keep rows in it, too."""
    reader = ListReader(ImportedConversation("a"), said("1"))
    home.take(reader)
    for file in home.root.glob(f"{FILE_NAME}*"):
        file.unlink()
    (home.root / FILE_NAME).write_bytes(content)
    assert home.plan(reader).messages_known == 1
    assert (home.root / FILE_NAME).read_bytes() == content
    with pytest.raises(CorruptStoreError, match=r"home\.db.*doctor"):
        home.take(reader)
    assert (home.root / FILE_NAME).read_bytes() == content


def test_the_import_state_of_a_deleted_record_is_ignored(home: Home, tmp_path: Path) -> None:
    """When state.db was deleted and a person accepts that, everything is imported again."""
    reader = ListReader(ImportedConversation("a"), said("1"))
    home.take(reader)
    home.store.close()
    for file in home.root.glob("state.db*"):
        file.unlink()
    accept_store(support_home.Home.at(home.root))
    assert Home(home.root).take(reader).messages == 1


def test_messages_that_two_copies_share_are_stored_once(home: Home) -> None:
    """A fork begins with the same messages: it becomes a branch with only its own messages, in any number."""
    items = [ImportItem(Path(name), 1, 1.0, "x") for name in "abc"]
    home.take(ListReader(ImportedConversation("a"), said("1"), said("2"), items=items[:1]))
    home.take(ListReader(ImportedConversation("b"), said("1"), said("2"), said("3"), items=items[1:2]))
    third = ListReader(ImportedConversation("c"), said("1"), said("2"), said("3"), said("4"), items=items[2:])
    assert home.plan(third).messages == 1
    home.take(third)
    found = home.everything()
    assert {name: [each["external_id"] for each in row["messages"]] for name, row in found.items()} == {
        "recited-a": ["1", "2"], "recited-b": ["3"], "recited-c": ["4"]
    }  # fmt: skip
    assert [(found[name]["parent_session_id"], found[name]["relation"]) for name in ("recited-b", "recited-c")] == [
        ("recited-a", "branch"), ("recited-b", "branch")
    ]  # fmt: skip


def test_a_fork_that_shares_more_than_a_batch_has_its_parent(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own messages come in a batch that shares none."""
    monkeypatch.setattr(item_import, "_MAX_BATCH_MESSAGES", 2)
    shared = [said(name) for name in "12345"]
    item_a, item_b = (ImportItem(Path(name), 1, 1.0, "recital") for name in "ab")
    home.take(ListReader(ImportedConversation("a"), *shared, items=[item_a]))
    home.take(ListReader(ImportedConversation("b"), *shared, said("6"), said("7"), items=[item_b]))
    fork = home.everything()["recited-b"]
    assert (fork["parent_session_id"], fork["relation"]) == ("recited-a", "branch")
    assert [each["external_id"] for each in fork["messages"]] == ["6", "7"]


def test_relatives_may_come_in_one_item(home: Home) -> None:
    """An archive holds a conversation and its branches; what they share is in the first of them."""
    branch = ImportedConversation("b", parent_host_id="a", relation="branch")
    reader = ListReader(ImportedConversation("a"), said("1"), said("2"), branch, said("1"), said("3"))
    assert home.plan(reader).as_json() == home.take(reader).as_json()
    assert [each["external_id"] for each in home.messages("recited-b")] == ["3"]


def test_a_copy_without_its_own_messages_creates_no_session(home: Home) -> None:
    """Until it continues; then it is a branch."""
    home.take(ListReader(ImportedConversation("a"), said("1"), items=[ImportItem(Path("a"), 1, 1.0, "x")]))
    home.take(ListReader(ImportedConversation("b"), said("1"), items=[ImportItem(Path("b"), 1, 1.0, "x")]))
    assert list(home.everything()) == ["recited-a"]
    home.take(ListReader(ImportedConversation("b"), said("2"), items=[ImportItem(Path("b"), 2, 2.0, "x")]))
    assert home.everything()["recited-b"]["messages"][0]["external_id"] == "2"


def test_delegated_work_has_its_session_as_parent(home: Home) -> None:
    """Or no parent, and is reported, when that session was not imported."""
    child = ImportedConversation("child", parent_host_id="a", relation="delegation")
    lost = ImportedConversation("lost", parent_host_id="gone", relation="delegation")
    reader = ListReader(ImportedConversation("a"), said("1"), child, said("2"), lost, said("3"))
    assert home.plan(reader).detached == ["recited-lost"]
    assert home.take(reader).detached == ["recited-lost"]
    found = home.everything()
    assert (found["recited-child"]["parent_session_id"], found["recited-child"]["relation"]) == (
        "recited-a", "delegation"
    )  # fmt: skip
    assert found["recited-lost"]["parent_session_id"] is None


def test_conversations_may_take_turns(home: Home) -> None:
    """A conversation that is named again continues where it was."""
    one, two = ImportedConversation("one"), ImportedConversation("two")
    home.take(ListReader(one, said("1"), two, said("2"), one, said("3"), two, said("4")))
    assert [each["external_id"] for each in home.messages("recited-one")] == ["1", "3"]
    assert [each["external_id"] for each in home.messages("recited-two")] == ["2", "4"]


def test_a_title_follows_the_program_until_a_person_gives_another(home: Home) -> None:
    """A taken title gets a number; one that a person chose stays."""
    home.take(ListReader(ImportedConversation("a", "Same"), said("1"), ImportedConversation("b", "Same"), said("2")))
    titles = {name: row["title"] for name, row in home.everything().items()}
    assert titles == {"recited-a": "Same", "recited-b": "Same #2"}
    later = [ImportItem(Path("recited"), 2, 2.0, "recital")]
    home.take(
        ListReader(
            ImportedConversation("a", "Better"), said("1"), ImportedConversation("b", "Same"), said("2"), items=later
        )
    )
    titles = {name: row["title"] for name, row in home.everything().items()}
    assert titles == {"recited-a": "Better", "recited-b": "Same #2"}
    home.store.titles.set_session_title("recited-a", "Mine")
    home.take(ListReader(ImportedConversation("a", "Best"), items=[ImportItem(Path("recited"), 3, 3.0, "recital")]))
    assert home.store.titles.get_session_title("recited-a") == "Mine"


@pytest.mark.parametrize("title", ["bell\b", "Plan #3", "x" * 300, "\u200b", " two  words "])
def test_a_title_stays_the_same_however_often_it_is_imported(home: Home, title: str) -> None:
    """Also one that can only be shown in part, or that ends in a number."""
    reader = ListReader(ImportedConversation("a", title), said("1"))
    home.take(reader)
    before = home.store.titles.get_session_title("recited-a")
    home.take(reader, rescan=True)
    assert home.store.titles.get_session_title("recited-a") == before


def test_a_session_of_ours_is_never_written_into(home: Home) -> None:
    """When its name is taken by another session, that is a conflict, and nothing is added."""
    home.store.sessions.create_session("recited-a", "cli")
    reader = ListReader(ImportedConversation("a"), said("1"))
    assert list(home.plan(reader).conflicts) == ["recited-a"]
    assert list(home.take(reader).conflicts) == ["recited-a"]
    assert home.everything()["recited-a"]["messages"] == []


def test_an_unstorable_message_is_a_problem_and_the_rest_is_imported(home: Home) -> None:
    """By file and line; a plan foresees it."""
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    reader = ListReader(
        ImportedConversation("a"),
        said("1"),
        ImportedMessage({"role": "", "external_id": "2"}, 8),
        said("3", content=deep),
    )
    planned, done = home.plan(reader), home.take(reader)
    assert planned.as_json() == done.as_json()
    assert [(problem.line, done.messages) for problem in done.problems] == [(8, 1), (7, 1)]


def test_a_message_without_an_id_is_a_problem(home: Home) -> None:
    """Without an external id, or without a conversation, it would be added with every import."""
    stray = ImportedMessage({"role": "user", "content": "x"}, 3)
    summary = home.take(ListReader(said("1"), ImportedConversation("a"), stray, said("2")))
    assert [(each.line, each.text) for each in summary.problems] == [
        (7, "a message without a conversation"), (3, "a message without an external id")
    ]  # fmt: skip
    assert summary.messages == 1


def test_ids_that_cannot_be_stored_are_recognized_again(home: Home) -> None:
    """Lone surrogates and NUL in ids do not add a message or session twice."""
    reader = ListReader(ImportedConversation("a\ud800\0"), said("x\udfff"), said("y\0"))
    assert home.take(reader).messages == 2
    assert home.take(reader, rescan=True).messages == 0


def test_an_error_of_a_reader_is_a_problem_and_the_item_is_read_again(home: Home) -> None:
    """What it yielded before is kept; the item does not count as read."""

    class Broken(ListReader):
        def read(self, item: ImportItem) -> Any:
            yield ImportedConversation("a")
            yield said("1")
            raise KeyError("oops")

    first = home.take(Broken())
    assert (first.messages, first.problem_count) == (1, 1)
    assert "oops" in first.problems[0].text
    assert home.take(Broken()).items_unchanged == 0


def test_a_message_without_a_time_was_said_after_the_one_before_it(home: Home) -> None:
    """Else when the session began, else before the file was last changed; never now."""
    item = ImportItem(Path("x"), 1, 77.0, "x")
    home.take(
        ListReader(
            ImportedConversation("a"),
            said("1", timestamp=None),
            said("2", timestamp="2026-01-01T00:00:00Z"),
            said("3", timestamp="nonsense"),
            items=[item],
        )
    )
    assert [each["timestamp"] for each in home.messages("recited-a")] == [77.0, 1767225600.0, 1767225600.0]


def test_each_user_of_a_gateway_has_separate_imports(home: Home) -> None:
    """What one user imported, the other has not."""
    from memoranda.importers.importer import Importer

    reader = ListReader(ImportedConversation("a", "Mine"), said("1"))
    for user in ("alice", "bob", None):
        engine = Importer(home.root, home.store.scoped(Scope.of(user)))
        assert engine.apply(reader, reader.scan(None)).messages == 1
        assert engine.apply(reader, reader.scan(None)).items_unchanged == 1
        engine.close()
    rows = home.everything().values()
    assert {(row["user_id"], row["title"]) for row in rows} == {("alice", "Mine"), ("bob", "Mine"), (None, "Mine")}


def test_many_problems_are_counted_and_the_first_thousand_kept(home: Home) -> None:
    """A file of garbage does not fill the memory."""
    summary = home.take(ListReader(*[Problem(Path("bad"), line, "not JSON") for line in range(1500)]))
    told = json.loads(json.dumps(summary.as_json()))
    assert (told["problem_count"], len(told["problems"]), told["problems_by_file"]) == (1500, 1000, {"bad": 1500})


def test_what_is_wrong_in_a_part_is_said_and_not_looked_at_again(home: Home) -> None:
    """Another look at what has not changed would find the same."""
    reader = ListReader(
        ImportedConversation("a"), said("1"), Problem(Path("recited"), None, "part 3 is not a JSON object")
    )
    assert home.take(reader).problem_count == 1
    assert home.take(reader).items_unchanged == 1


def test_what_is_read_again_has_only_the_problems_that_are_left(home: Home) -> None:
    """A line that was finished since is none any more; what precedes the checkpoint still is."""
    wrong, unfinished = Problem(Path("a"), 1, "not JSON"), Problem(Path("a"), 3, "not finished")
    locked = Problem(Path("a"), None, "locked", unread=True)
    first, second = ImportSummary("recited"), ImportSummary("recited")
    first.start_item(ImportItem(Path("a"), 10, 1.0, "x"))
    for problem in (wrong, unfinished, locked):
        first.add_problem(ImportItem(Path("a"), 10, 1.0, "x"), problem)
    first.add_problem(ImportItem(Path("a"), 10, 1.0, "another part of it"), wrong)
    second.start_item(ImportItem(Path("a"), 20, 2.0, "x", Checkpoint(5, 2)))
    first.add(second)
    assert (first.problems, first.problem_count) == ([wrong, wrong], 2)


def test_a_lasting_problem_is_counted_once(home: Home) -> None:
    """A source that is still being written is read every few seconds."""
    total = home.take(ListReader(Problem(Path("bad"), None, "no")))
    for parse_timestamp in (2.0, 3.0):
        later = [ImportItem(Path("recited"), 1, parse_timestamp, "recital")]
        total.add(home.take(ListReader(Problem(Path("bad"), None, "no"), items=later)))
    assert (total.problem_count, len(total.problems), total.problems_by_file) == (1, 1, {Path("bad"): 1})


@pytest.mark.parametrize(
    "tool",
    ["mcp__memoranda__session_search", "memoranda__memory", "memoranda.session_search", "mcp_memoranda_memory",
     "memoranda_session_search"],
)  # fmt: skip
def test_results_of_our_own_tools_are_not_imported(home: Home, tool: str) -> None:
    """A search would find them instead of what they quote; their length stays."""
    answer = said("2", "old talk about dunnarts", role="tool", tool_call_id="c", tool_name=tool)
    home.take(ListReader(ImportedConversation("a"), said("1"), answer))
    message = home.messages("recited-a")[1]
    assert (message["content"], message["tool_name"]) == ("[an answer of memory: 23 characters, not imported]", tool)


@pytest.mark.parametrize("tool", ["mcp__zoo__memoranda", "Bash", "session_search", "memorandall__x", None])
def test_results_of_other_tools_are_imported(home: Home, tool: str | None) -> None:
    """Whatever their names."""
    home.take(
        ListReader(ImportedConversation("a"), said("2", "dunnarts", role="tool", tool_call_id="c", tool_name=tool))
    )
    assert home.messages("recited-a")[0]["content"] == "dunnarts"


def test_progress_reaches_the_end(home: Home) -> None:
    """It is counted in bytes of all items, and never goes backwards."""
    from memoranda.importers.importer import Importer, ImportProgress

    told: list[ImportProgress] = []
    reader = ListReader(ImportedConversation("a"), *[said(str(number)) for number in range(1200)],
                     items=[ImportItem(Path("a"), 10, 1.0, "x"), ImportItem(Path("b"), 20, 1.0, "x")])  # fmt: skip
    engine = Importer(home.root, home.store, progress=told.append)
    engine.apply(reader, reader.scan(None))
    engine.close()
    assert told == sorted(told, key=lambda each: each.bytes)
    assert (told[-1].bytes, told[-1].all_bytes, told[-1].messages) == (30, 30, 1200)


def test_a_session_belongs_to_the_project_that_it_worked_on(home: Home, tmp_path: Path) -> None:
    """Known by its repository, not by the path; a directory that is in none is a project by its path."""
    repository = tmp_path / "shop"
    (repository / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    subprocess.run(
        ["git", "-C", str(repository), "remote", "add", "origin", "git@example.com:ann/shop.git"], check=True
    )
    here, nowhere = str(repository / "src"), "/nowhere/at/all"
    home.take(
        ListReader(
            ImportedConversation("a", directory=here),
            said("1"),
            ImportedConversation("b", directory=nowhere),
            said("2"),
        )
    )
    found = home.everything()
    assert (found["recited-a"]["project"], found["recited-a"]["directory"]) == ("example.com/ann/shop", here)
    assert found["recited-b"]["project"] == nowhere
