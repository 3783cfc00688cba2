"""Import state: where to continue, what the reader must know, and no credentials."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.reader_protocol import Checkpoint, ImportItem
from memoranda.importers.state.store import ImportState, ItemState
from memoranda.storage.home_database import FILE_NAME
from tests.examples import examples
from tests.importers.import_home import Home, write_lines

_SECRET = "ghp_q7Zt2Xw9Lk4Vn8Rb3Mc6Hs1Jd5Gf0Py9Ua2T"
_PIECES = ('"', "'", "\\", "\n", " ", "=", "API_KEY=", "password: ", "Bearer ", "postgres://a:", "@h/db", _SECRET, "é")


def _remembered(root: Path, state: str) -> str:
    """The state of a mark after it was written and read again."""
    item = ImportItem(root / "a.jsonl", 1, 1.0, "messages")
    import_state = ImportState(root, "store", None)
    import_state.save_item("x", item, ItemState(1, 1.0, (), Checkpoint(1, 1, state), ""), [])
    import_state.close()
    later = ImportState(root, "store", None)
    found = later.item_state("x", item)
    later.close()
    assert found is not None
    assert found.checkpoint is not None
    return found.checkpoint.state


@pytest.mark.parametrize("title", ["key {}", 'Why does "export API_KEY={}" fail', "password='{}'\\"])
def test_the_import_state_contains_no_credential(tmp_path: Path, title: str) -> None:
    """Neither in a title nor in a directory; the rest of what the reader knows stays."""
    state = {"facts": {"title": title.format(_SECRET)}, "rank": 3}
    kept = json.loads(_remembered(tmp_path, json.dumps(state)))
    assert (kept["rank"], _SECRET in kept["facts"]["title"]) == (3, False)
    assert all(_SECRET.encode() not in file.read_bytes() for file in tmp_path.glob(f"{FILE_NAME}*"))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), st.text(max_size=20))
def test_a_reader_can_parse_its_redacted_state(
    tmp_path_factory: pytest.TempPathFactory, title: str, directory: str
) -> None:
    """With any mix of credentials and quotes."""
    state = json.dumps({"facts": {"title": title, "directory": directory}, "calls": {"toolu_01": "Bash"}})
    kept = json.loads(_remembered(tmp_path_factory.mktemp("home"), state))
    assert (kept["calls"], set(kept["facts"])) == ({"toolu_01": "Bash"}, {"title", "directory"})


def test_a_session_with_a_credential_in_its_title_continues(home: Home, tmp_path: Path) -> None:
    """An import continues where the last one ended."""
    lines = [{"type": "ai-title", "aiTitle": f'Why does "export API_KEY={_SECRET}" fail', "sessionId": "s"}]
    file = write_lines(tmp_path / "projects" / "-x" / "s.jsonl", [*lines, _line(1)])
    assert home.take(ClaudeCode(), file).messages == 1
    write_lines(file, [*lines, _line(1), _line(2)])
    grown = home.take(ClaudeCode(), file)
    assert (grown.messages, grown.problems) == (1, [])


def test_a_damaged_checkpoint_is_ignored(home: Home, tmp_path: Path) -> None:
    """The file is read from its beginning, and new messages are added."""
    file = write_lines(tmp_path / "projects" / "-x" / "s.jsonl", [_line(1)])
    home.take(ClaudeCode(), file)
    with closing(sqlite3.connect(home.root / FILE_NAME)) as connection:
        connection.execute("""UPDATE import_items SET state = '{"facts": {"title": "[redacted:x]" fail"}}'""")
        connection.commit()
    write_lines(file, [_line(1), _line(2)])
    grown = home.take(ClaudeCode(), file)
    assert (grown.messages, grown.messages_known, grown.problems) == (1, 1, [])


@pytest.mark.parametrize("damaged", ["3", "[", '{"a": 1}', "[1, null]"])
def test_a_damaged_list_of_sessions_costs_only_their_count(home: Home, tmp_path: Path, damaged: str) -> None:
    """The file itself is still known."""
    file = write_lines(tmp_path / "projects" / "-x" / "s.jsonl", [_line(1)])
    home.take(ClaudeCode(), file)
    with closing(sqlite3.connect(home.root / FILE_NAME)) as connection:
        connection.execute("UPDATE import_items SET sessions = ?", (damaged,))
        connection.commit()
    rescan = home.take(ClaudeCode(), file)
    assert (rescan.items_unchanged, rescan.count("unchanged")) == (1, 0)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _line(number: int) -> dict[str, object]:
    return {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": "s",
        "timestamp": f"2026-01-01T00:00:0{number}Z",
        "message": {"role": "user", "content": f"words {number}"},
    }
