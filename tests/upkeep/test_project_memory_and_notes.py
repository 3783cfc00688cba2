"""Memory of a project, notes and facts of entries go wherever the rest of a home goes, and stay what they are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.api.memory import Memory
from memoranda.memory.curated import change_history
from memoranda.memory.record.transfer.items import take_items
from memoranda.support.home import Home
from memoranda.support.origin import PERSON
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.restore import opened_backup, restore_backup
from memoranda.upkeep.migration.migrate import migrate_to_files, migrate_to_server
from memoranda.upkeep.sync.synchroniser import synchronise

_NOTE = "The invoice archive of Globex is on the server heron."
_ENTRIES = (
    ("memory", "The API is frozen.", "2999-01-31"),
    ("memory", "The rack 14 is in the cellar.", ""),
    ("user", "time zone: Europe/Berlin", ""),
    ("project", "Uses tabs here.", "2999-02-01"),
    ("project", "Deploys from rack 14.", ""),
    ("notes", _NOTE, ""),
    ("memory", "Globex is a customer.", ""),
)


def _ignore(what: str, done: int, total: int) -> None:
    """Progress is not of interest."""


@pytest.fixture
def fill(tmp_path: Path) -> Callable[[Memory], None]:
    """Entries of three targets with all their facts, a note, and an entry that a move made a note."""
    heron = tmp_path / "work" / "heron"
    heron.mkdir(parents=True)

    def fill(memory: Memory) -> None:
        with memory.session(source="cli", directory=heron) as session:
            session.record("user", "Please keep this.")
            for target, text, until in _ENTRIES:
                call = {"target": target, "action": "add", "content": text, "until": until}
                assert session.call("memory", call)["success"]
            assert session.call("memory", {"action": "move", "old_text": "customer", "to": "notes"})["success"]
        change_history.confirm_entry(memory.curated, ["memory"], "frozen", PERSON)
        memory.remember("Prefers short answers.", "user")

    return fill


def _known(memory: Memory) -> dict[str, Any]:
    """Everything that is known about entries and notes, but for the ids of messages, which are each machine's own."""
    curated = memory.curated
    assert curated.notes is not None
    facts = [each for target in sorted(curated.storage.targets()) for each in curated.facts(target)]
    return {
        "facts": [
            (each.target, each.entry.text, each.written, each.confirmed, each.actor, each.session, each.until)
            for each in facts
        ],
        "notes": sorted((note.text, note.owner, note.at, note.actor, note.session) for note in curated.notes.all()),
    }


@pytest.mark.slow
def test_a_restored_backup_has_them(tmp_path: Path, fill: Callable[[Memory], None]) -> None:
    """Every fact, entry and note."""
    with memoranda.open(tmp_path / "home") as memory:
        fill(memory)
        before = _known(memory)
    assert len(before["facts"]) == 6 and len(before["notes"]) == 2
    write_backup(tmp_path / "home", tmp_path / "home.zip", BackupOptions())
    with opened_backup(tmp_path / "home.zip", None) as archive:
        restore_backup(archive, Home(tmp_path / "again"))
    with memoranda.open(tmp_path / "again") as memory:
        assert _known(memory) == before
        assert memory.call("session_search", {"query": "Globex invoice archive"})["notes"]


@pytest.mark.slow
def test_a_home_that_moves_to_a_server_and_back_has_them(
    tmp_path: Path, fill: Callable[[Memory], None], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tables, and in files again."""
    with memoranda.open(tmp_path / "home") as memory:
        fill(memory)
        before = _known(memory)
    migrate_to_server(Home.at(tmp_path / "home"), postgres_url, _ignore)
    migrate_to_files(postgres_url, Home.at(tmp_path / "back"), _ignore)
    with memoranda.open(tmp_path / "back") as memory:
        assert _known(memory) == before
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    with memoranda.open(tmp_path / "node") as memory:
        assert _known(memory) == before
        assert memory.call("session_search", {"query": "Globex invoice archive"})["notes"]


@pytest.mark.slow
def test_the_other_machine_has_them(tmp_path: Path, fill: Callable[[Memory], None]) -> None:
    """What is confirmed or becomes a note there comes back; nothing is sent twice."""
    (tmp_path / "shared").mkdir()
    with ExitStack() as stack:
        a, b = (stack.enter_context(memoranda.open(tmp_path / name)) for name in "ab")

        def sync() -> list[int]:
            reports = [
                synchronise(each.home.root, each.sessions, each.curated, tmp_path / "shared") for each in (a, b, a)
            ]
            assert not any(report.refused or report.conflicts for report in reports)
            return [report.parts_written for report in reports]

        fill(a)
        sync()
        assert _known(b) == _known(a)
        change_history.confirm_entry(b.curated, ["user"], "Prefers", PERSON)
        assert b.call("memory", {"action": "move", "old_text": "rack 14", "to": "notes"})["success"]
        sync()
        assert _known(a) == _known(b) and len(_known(b)["notes"]) == 3
        assert sync() == [0, 0, 0]


@pytest.fixture(params=["files", pytest.param("server", marks=pytest.mark.slow)])
def memory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    if request.param == "server":
        monkeypatch.setenv("MEMORANDA_STORE", request.getfixturevalue("postgres_url"))
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


@pytest.mark.slow
def test_forgetting_leaves_the_facts_of_everything_else(memory: Memory, fill: Callable[[Memory], None]) -> None:
    """The history goes where the text was in it, and what is known of other entries stays."""
    fill(memory)
    before = _known(memory)
    assert not memory.forget("rack 14").left
    after = _known(memory)
    assert after["facts"] == [each for each in before["facts"] if "rack 14" not in each[1]]
    assert after["notes"] == before["notes"]
    memory.forget("Globex")
    assert "Globex" not in str(_known(memory)["notes"])


def test_purging_the_history_leaves_the_facts(memory: Memory, fill: Callable[[Memory], None]) -> None:
    """Of every entry: when it was written and confirmed, by whom, where, and its last day."""
    fill(memory)
    before = _known(memory)
    change_history.purge(memory.curated)
    assert len(change_history.log(memory.curated)) == 3 and _known(memory) == before


def test_an_export_has_the_notes(memory: Memory, fill: Callable[[Memory], None], tmp_path: Path) -> None:
    """Imported elsewhere, they are notes there."""
    fill(memory)
    items: list[Any] = []
    assert list(take_items(memory.sessions.item_transfer.iter_export(), items)) == []
    with memoranda.open(tmp_path / "elsewhere") as other:
        other.sessions.item_transfer.import_items(items)
        assert _known(other)["notes"] == _known(memory)["notes"]
