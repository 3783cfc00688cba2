"""Items in a file: redaction, damage, a killed writer, and what `doctor` says."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import SessionError
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.safety.redaction import Redactor
from memoranda.storage.sqlite.database import PAGE_SIZE
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from tests.timing import HANG

_SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
_PUT_MANY = """
import sys
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
with open_store(sys.argv[1]) as store:
    items = store.scoped(Scope.of(None)).items
    for number in range(100_000):
        print(items.put(("n",), f"k{number % 50}", {"number": number}).version, number, flush=True)
"""


def test_credentials_are_removed_from_values_and_refused_in_names(path: Path) -> None:
    """A value keeps the rest of its text; a key and a namespace identify, so they are refused."""
    with open_store(path, redactor=Redactor()) as store:
        items = store.scoped(Scope.of(None)).items
        item = items.put(("n",), "k", {"note": f"the key is {_SECRET}", "deep": [{"token": _SECRET}]})
        assert _SECRET not in str(item.value)
        assert item.value["note"].startswith("the key is ")
        for namespace, key in ((("n",), _SECRET), (("n", _SECRET), "k")):
            with pytest.raises(SessionError, match="credential"):
                items.put(namespace, key, 1)
        assert store.usage.get_meta("redacted_secrets") == "2"
    assert _SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("key", ["0b0a6ea5-1f9d-4c5c-9c4f-2f6c8a3d9b11", "9f86d081884c7d659a2feaa0c55ad015" * 2])
def test_ids_are_usable_as_keys(path: Path, key: str) -> None:
    """Ids and hashes, which programs use as keys, are not taken for credentials."""
    with open_store(path, redactor=Redactor()) as store:
        assert store.scoped(Scope.of(None)).items.put(("n",), key, 1).key == key


def test_damage_is_noticed(tmp_path: Path) -> None:
    """A value that changed on the disk is marked where it is read, and `doctor` names the item until it is accepted."""
    with memoranda.open(tmp_path) as memory:
        memory.items.put(("notes", "work"), "k", {"text": "original words"})
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
        connection.execute("UPDATE memory_items SET value = replace(value, 'original', 'modified')")
    with memoranda.open(tmp_path) as memory:
        item = memory.items.get(("notes", "work"), "k")
    assert item is not None
    assert item.damaged
    (issue,) = [issue for issue in examine(Home.at(tmp_path)) if "items" in issue.problem]
    assert "notes/work/k" in issue.problem
    assert issue.repair is not None
    issue.repair()
    assert not [issue for issue in examine(Home.at(tmp_path)) if issue.severity == "error"]


@pytest.mark.slow
def test_an_acknowledged_item_survives_a_killed_writer(path: Path) -> None:
    """The process is killed while it writes; every version that it was told of is there, and the file is intact."""
    with subprocess.Popen([sys.executable, "-c", _PUT_MANY, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(300)]
        process.kill()
        told += process.stdout.readlines()
        process.wait(HANG)
    acknowledged = [tuple(map(int, line.split())) for line in told if line.endswith("\n")]
    with open_store(path) as store:
        items = store.scoped(Scope.of(None)).items
        last: dict[str, tuple[int, int]] = {f"k{number % 50}": (version, number) for version, number in acknowledged}
        for key, (version, number) in last.items():
            history = {each.version: each.value for each in items.history(("n",), key)}
            assert history[version] == {"number": number}
        assert store.maintenance.check_integrity(thorough=True) == []
        assert store.item_passages.damaged() == []


@pytest.mark.slow
def test_a_salvage_keeps_the_items(tmp_path: Path) -> None:
    """Items are rows like others: what can be read of a damaged file is in the new one, and is found."""
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s", "cli")
        for number in range(60):
            memory.items.put(("n",), f"k{number}", {"text": f"zebra {number} " + "filler " * 300})
    path = tmp_path / "state.db"
    content = bytearray(path.read_bytes())
    pages = len(content) // PAGE_SIZE
    for page in (pages - 3, pages - 4):
        content[page * PAGE_SIZE : (page + 1) * PAGE_SIZE] = b"\xa5" * PAGE_SIZE
    path.write_bytes(content)
    (issue,) = [issue for issue in examine(Home.at(tmp_path)) if issue.path == path]
    assert issue.repair is not None
    issue.repair()
    with memoranda.open(tmp_path) as memory:
        left = memory.items.search(("n",), limit=100)
        assert 40 < len(left) < 60
        assert len(memory.items.search(("n",), "zebra", limit=100)) == len(left)


def test_the_parts_of_a_store_for_everyone_do_not_write(store: SessionStore) -> None:
    """An operator's store reads no single item, because it could belong to any user."""
    with pytest.raises(SessionError, match="one user"):
        store.items.get(("n",), "k")
