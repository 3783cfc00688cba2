"""Forgetting a text: it is gone from every byte of the home, and everything else is as it was."""

import json
import secrets
import string
from pathlib import Path

import pytest

import memoranda
from memoranda.memory.record.scope import Scope
from tests.upkeep.forgetting.filled_home import fill, import_transcripts, occurrences


@pytest.fixture(scope="module")
def marker() -> str:
    return "q" + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory: pytest.TempPathFactory, marker: str) -> Path:
    root, source = tmp_path_factory.mktemp("forget") / "home", tmp_path_factory.mktemp("claude")
    fill(root, source, marker)
    with memoranda.open(root) as memory:
        report = memory.forget(marker, dry_run=True)
        (root.parent / "listed.json").write_text(json.dumps(report.as_data()))
        (root.parent / "before.json").write_text(json.dumps(occurrences(root, marker)))
        report = memory.forget(marker)
    (root.parent / "report.json").write_text(json.dumps(report.as_data()))
    (root.parent / "source").symlink_to(source)
    return root


@pytest.mark.slow
def test_it_is_listed_wherever_it_is(forgotten: Path) -> None:
    """A dry run names every file that has it, and changes nothing."""
    places = json.loads((forgotten.parent / "listed.json").read_text())["found"]
    areas = {place["area"] for place in places}
    expected = {"curated memory", "journal", "backups", "proposals", "record", "outbox", "facts", "logs", "files",
                "imports", "skills", "turns", "outside"}  # fmt: skip
    assert areas >= expected
    kinds = {place["where"].rpartition(": ")[2] for place in places if place["area"] == "record"}
    assert kinds >= {"message", "summary", "title", "prompt", "tasks", "notes", "extra"}
    assert json.loads((forgotten.parent / "before.json").read_text()).keys() >= {
        "memories/MEMORY.md", "memories/journal.jsonl", "state.db", "holographic.cache/holographic.db", "home.db",
    }  # fmt: skip


@pytest.mark.slow
def test_no_byte_of_it_is_left(forgotten: Path, marker: str) -> None:
    """An independent search of all files, archives included, finds nothing, and the report says so."""
    assert occurrences(forgotten, marker) == {}
    report = json.loads((forgotten.parent / "report.json").read_text())
    assert report["problems"] == []
    # The service that is down has not confirmed that it has nothing; it is the only place that is left.
    assert [(place["area"], place["where"]) for place in report["left"]] == [("provider", "down")]
    assert not report["complete"]
    assert report["files_read"] > 20


@pytest.mark.slow
def test_other_text_stays(forgotten: Path) -> None:
    """Messages, entries, files and history keep everything else."""
    with memoranda.open(forgotten) as memory:
        assert memory.entries() == ("Likes pears.",)
        texts = [message["content"] for message in memory.sessions.get_messages("continued")]
        assert texts == ["They talked about [forgotten] and bananas.", "Noted: [forgotten], and bananas."]
        session = memory.search("bananas")["results"][0]["session_id"]
        call = next(each["tool_calls"][0] for each in memory.sessions.get_messages(session, include_inactive=True)
                    if each["tool_calls"])  # fmt: skip
        arguments = json.loads(call["function"]["arguments"])
        assert arguments == {"path": "/srv/[forgotten].txt", "why": "it says\n[forgotten]"}
        assert memory.sessions.conversation_todos("continued") == '[{"content":"Buy bananas"}]'
        assert memory.sessions.scoped(Scope.everyone()).checksums.damaged_messages() == []
    assert "all is well" in (forgotten / "logs" / "chat.log").read_text()
    assert (forgotten / "chat_history").read_text().endswith("what about figs?\n")
    assert json.loads((forgotten / "expansions.json").read_text())["0b"] == ["melons"]
    assert "Then bake." in (forgotten / "skills" / "bake" / "SKILL.md").read_text()
    assert "walnuts" in (forgotten / "memories" / "MEMORY.md.bak.1700000000-0").read_text()
    assert "plums" in "".join(path.read_text() for path in (forgotten / "memories" / "pending").glob("*.json"))
    assert (forgotten / "state.db.damaged-1700000000").read_bytes().endswith(b"\2 the rest")


def test_curated_memory_still_undoes_other_changes(forgotten: Path) -> None:
    """The journal replays to the entries of the file."""
    with memoranda.open(forgotten) as memory:
        assert memory.curated.journal.entries_after("memory") == ["Likes pears."]
        assert memory.remember("Likes plums.")["success"]
        assert memory.entries() == ("Likes pears.", "Likes plums.")


def test_another_import_does_not_restore_it(forgotten: Path, marker: str) -> None:
    """Not even one that reads the files from their start again, or one after the file has grown."""
    source = (forgotten.parent / "source").resolve()
    assert import_transcripts(forgotten, source) == 0
    (forgotten / "home.db").unlink()
    assert import_transcripts(forgotten, source) == 0
    assert occurrences(forgotten, marker) == {}


@pytest.mark.slow
def test_a_second_run_finds_nothing(forgotten: Path, marker: str) -> None:
    """Forgetting again changes nothing and proves the same."""
    with memoranda.open(forgotten) as memory:
        report = memory.forget(marker)
    assert report.found == ()
    assert {place.area for place in report.left} <= {"provider"}
