"""What was deleted here stays deleted: with the memory of imports or without it, in copies, and in the figures."""

from pathlib import Path

import pytest

from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.exports.jsonl import JsonLines
from memoranda.importers.importer import Importer
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem
from memoranda.storage.home_database import FILE_NAME
from tests.importers.claude_code_lines import assistant, call, result, user
from tests.importers.import_home import Home, ListReader, write_lines
from tests.importers.test_importer import said


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_session_that_was_deleted_here_stays_deleted(home: Home) -> None:
    """It is said, and `again` brings it back."""
    home.take(ListReader(ImportedConversation("a"), said("1")))
    home.store.deletion.delete_session("recited-a")
    grown = ListReader(
        ImportedConversation("a"), said("1"), said("2"), items=[ImportItem(Path("recited"), 2, 2.0, "recital")]
    )
    assert home.plan(grown).count("deleted") == 1
    assert home.take(grown).count("deleted") == 1
    assert home.everything() == {}
    assert home.plan(grown, rescan=True).messages == 2
    assert home.take(grown, rescan=True).messages == 2


@pytest.mark.parametrize("way", ["deleted", "pruned"])
def test_what_was_deleted_stays_deleted_without_the_memory_of_imports(home: Home, way: str) -> None:
    """The record itself knows what was deleted from it, by its id."""
    reader = ListReader(ImportedConversation("a"), said("1", "secret plans"), ImportedConversation("b"), said("2"))
    home.take(reader)
    if way == "pruned":
        # Imported sessions are ended; this one was reopened here.
        home.store.sessions.reopen_session("recited-b")
        assert home.store.deletion.prune_sessions() == 1
    else:
        home.store.deletion.delete_session("recited-a")
    _lose_memory(home)
    assert [home.plan(reader).count(fate) for fate in ("deleted", "unchanged", "new")] == [1, 1, 0]
    assert [home.take(reader).count(fate) for fate in ("deleted", "unchanged", "new")] == [1, 1, 0]
    assert list(home.everything()) == ["recited-b"]
    assert all(b"secret plans" not in file.read_bytes() for file in home.root.iterdir())
    assert home.take(reader, rescan=True).messages == 1


@pytest.mark.slow
def test_what_was_deleted_does_not_come_back_in_a_copy_of_it(home: Home) -> None:
    """A branch that is read from its beginning still has only what is its own, with a memory of imports or without."""
    trunk = [said(f"t{number}") for number in range(600)]
    whole = ListReader(ImportedConversation("a"), *trunk, items=[ImportItem(Path("a"), 1, 1.0, "x")])
    for parse_timestamp in (1.0, 2.0, 3.0):
        branch = ListReader(ImportedConversation("b"), *trunk, said("3"), said(f"at {parse_timestamp}"),
                         items=[ImportItem(Path("b"), 1, parse_timestamp, "x")])  # fmt: skip
        home.take(whole)
        assert home.plan(branch).messages == home.take(branch).messages
        home.store.deletion.delete_session("recited-a")
        if parse_timestamp == 2.0:
            _lose_memory(home)
    assert [each["external_id"] for each in home.messages("recited-b")] == ["3", "at 1.0", "at 2.0", "at 3.0"]


def test_a_branch_without_import_state_starts_where_it_started(home: Home) -> None:
    """Also when it is read before the deleted session of which it is a copy."""
    trunk = [said("1"), said("2")]
    whole = ListReader(ImportedConversation("a"), *trunk, items=[ImportItem(Path("a"), 1, 1.0, "x")])
    branch = ListReader(ImportedConversation("b"), *trunk, said("3"), items=[ImportItem(Path("b"), 1, 1.0, "x")])
    home.take(whole)
    home.take(branch)
    home.store.deletion.delete_session("recited-a")
    _lose_memory(home)
    assert home.take(branch).messages == home.take(whole).messages == 0
    assert [each["external_id"] for each in home.messages("recited-b")] == ["3"]


@pytest.mark.slow
def test_a_conversation_that_goes_on_in_a_new_file_comes_in_whole(home: Home) -> None:
    """It is another conversation, however long it is; also when an import was killed just after it was made."""
    trunk = [said(f"t{number}") for number in range(1200)]
    home.take(ListReader(ImportedConversation("a"), *trunk, items=[ImportItem(Path("a"), 1, 1.0, "x")]))
    home.store.deletion.delete_session("recited-a")
    home.store.sessions.create_session("recited-c", "recited", host="recited")
    for name in ("b", "c"):
        later = ListReader(
            ImportedConversation(name), *trunk, said("more"), items=[ImportItem(Path(name), 1, 1.0, "x")]
        )
        assert home.take(later).messages == 1201
        home.store.deletion.delete_session(f"recited-{name}")


def test_a_branch_of_a_deleted_session_goes_on_growing(home: Home, tmp_path: Path) -> None:
    """What is read from where it was left is its own."""
    trunk = [user(f"u{number}", f"words {number}") for number in range(3)]
    first = write_lines(tmp_path / "projects" / "p" / "first.jsonl", trunk)
    fork = write_lines(tmp_path / "projects" / "p" / "fork.jsonl", [*trunk, user("own", "mine")])
    for file in (first, fork):
        home.take(ClaudeCode(), file)
    home.store.deletion.delete_session("claude-code-first")
    write_lines(fork, [*trunk, user("own", "mine"), user("later", "later")])
    assert home.take(ClaudeCode(), fork).messages == 1
    assert [each["external_id"] for each in home.messages("claude-code-fork")] == ["own", "later"]


@pytest.mark.slow
def test_a_branch_has_nothing_twice_without_the_memory_of_imports(home: Home) -> None:
    """Whichever is read first: the record knows where it came from."""
    trunk = [said(f"t{number}") for number in range(600)]
    whole = ListReader(ImportedConversation("a"), *trunk, items=[ImportItem(Path("a"), 1, 1.0, "x")])
    branch = ListReader(ImportedConversation("b"), *trunk, said("3"), items=[ImportItem(Path("b"), 1, 1.0, "x")])
    home.take(whole)
    home.take(branch)
    _lose_memory(home)
    assert home.take(branch).messages == home.take(whole).messages == 0


@pytest.mark.parametrize("grows", [False, True])
def test_no_word_of_a_deleted_session_is_left_after_the_next_import(home: Home, tmp_path: Path, grows: bool) -> None:
    """Nor its title, in any file of the home; what is known of others stays, such as a tool that has not answered."""
    title = {"type": "custom-title", "customTitle": "Secret plans"}
    place = tmp_path / "projects" / "p"
    file = write_lines(place / "s.jsonl", [user("u1", "words"), title])
    others = [user("u2", "others"), assistant("a2", call("toolu_1", "Bash", command="ls"))]
    write_lines(place / "t.jsonl", others)
    home.take(ClaudeCode(), place)
    home.store.deletion.delete_session("claude-code-s")
    if grows:
        write_lines(file, [user("u1", "words"), title, user("u3", "more")])
    engine = Importer(home.root, home.store)
    engine.apply(ClaudeCode(), ClaudeCode().scan(place))
    assert all(b"Secret plans" not in each.read_bytes() for each in home.root.iterdir())
    engine.close()
    write_lines(file, [user("u1", "words"), title, user("u3", "more"), user("u4", "still more")])
    write_lines(place / "t.jsonl", [*others, user("u5", [result("toolu_1", "a file")])])
    assert home.take(ClaudeCode(), place).messages == 1
    assert home.messages("claude-code-t")[-1]["tool_name"] == "Bash"
    assert home.take(ClaudeCode(), place, rescan=True).messages == 3
    assert home.store.titles.get_session_title("claude-code-s") == "Secret plans"


def test_work_for_a_deleted_session_stays_away_with_it(home: Home) -> None:
    """Also what was delegated only after it was deleted."""
    home.take(ListReader(ImportedConversation("a"), said("1")))
    home.store.deletion.delete_session("recited-a")
    child = ImportedConversation("child", parent_host_id="a", relation="delegation")
    reader = ListReader(child, said("2"), items=[ImportItem(Path("child"), 1, 1.0, "x")])
    assert home.take(reader).count("deleted") == 1
    assert home.everything() == {}
    assert home.take(reader, rescan=True).messages == 1


def test_a_branch_of_a_deleted_session_has_no_parent(home: Home) -> None:
    """A plan foresees it."""
    home.take(ListReader(ImportedConversation("a"), said("1")))
    home.store.deletion.delete_session("recited-a")
    branch = ImportedConversation("b", parent_host_id="a", relation="branch")
    later = ListReader(
        ImportedConversation("a"), said("1"), branch, said("2"), items=[ImportItem(Path("recited"), 2, 2.0, "recital")]
    )
    planned = home.plan(later)
    assert planned.detached == ["recited-b"]
    assert planned.as_json() == home.take(later).as_json()


def test_deleted_sessions_of_unchanged_files_are_counted_apart(home: Home) -> None:
    """They are not unchanged; and a file that has grown still holds what it held before."""
    reader = ListReader(
        ImportedConversation("a"), said("1"), ImportedConversation("b"), said("2"), ImportedConversation("c"), said("3")
    )
    home.take(reader)
    home.store.deletion.delete_session("recited-b")
    second = home.take(reader)
    assert (second.items_unchanged, second.count("unchanged"), second.count("deleted")) == (1, 2, 1)
    assert second.as_json()["sessions_deleted_here"] == 1


def test_a_file_that_goes_on_still_holds_the_sessions_before(home: Home, tmp_path: Path) -> None:
    """They are counted although only its end was read."""
    lines = [{"session": name, "role": "user", "content": name, "id": name} for name in "abc"]
    file = write_lines(tmp_path / "talk.jsonl", lines)
    home.take(JsonLines(), file)
    write_lines(file, [*lines, {"session": "c", "role": "user", "content": "more", "id": "d"}])
    assert home.take(JsonLines(), file).messages == 1
    assert home.take(JsonLines(), file).count("unchanged") == 3


def _lose_memory(home: Home) -> None:
    for file in home.root.glob(f"{FILE_NAME}*"):
        file.unlink()
