"""What the doctor says of the index."""

import sqlite3
from pathlib import Path

from memoranda.memory.record.store import SessionStore
from memoranda.search.index.health import check
from memoranda.search.index.search_index import SearchIndex
from tests.search.index.conftest import ids


def _made(sessions: SessionStore, index: SearchIndex) -> list[int]:
    sessions.sessions.create_session("s", "cli", title="Voles")
    made = sessions.messages.append_messages("s", [{"role": "user", "content": f"vole n{n} 数据"} for n in range(30)])
    index.catch_up()
    index.close()
    return made


def _harm(index: SearchIndex, statement: str) -> None:
    connection = sqlite3.connect(index.files[0])
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_sound_index_has_no_findings(tmp_path: Path, sessions: SessionStore, index: SearchIndex) -> None:
    """Nothing to say, whether it is empty or not."""
    assert list(check(tmp_path / "index.db", sessions.feed)) == []
    _made(sessions, index)
    assert list(check(tmp_path / "index.db", sessions.feed)) == []


def test_a_missing_or_late_index_is_noted_and_can_be_made(
    tmp_path: Path, sessions: SessionStore, index: SearchIndex
) -> None:
    """Neither is an error."""
    made = _made(sessions, index)
    index.files[0].unlink()
    (finding,) = check(tmp_path / "index.db", sessions.feed)
    assert (finding.severity, finding.problem) == ("note", "does not exist yet")
    assert finding.repair is not None
    finding.repair()
    assert list(check(tmp_path / "index.db", sessions.feed)) == []
    sessions.messages.append_message("s", "user", "more")
    (finding,) = check(tmp_path / "index.db", sessions.feed)
    assert finding.problem == "is 1 messages behind"
    assert finding.repair is not None
    finding.repair()
    assert index.state().indexed.count == made[-1] + 1


def test_lost_words_are_noticed_and_repaired(tmp_path: Path, sessions: SessionStore, index: SearchIndex) -> None:
    """The check runs real queries, so it notices an index that is a valid file but empty."""
    made = _made(sessions, index)
    _harm(index, "DELETE FROM postings WHERE token IN ('vole', '数据')")
    (finding,) = check(tmp_path / "index.db", sessions.feed)
    assert finding.severity == "error"
    assert "does not find" in finding.problem
    assert finding.repair is not None
    finding.repair()
    assert list(check(tmp_path / "index.db", sessions.feed)) == []
    assert ids(index, "vole") == [*made[::-1], 0]


def test_wrong_counts_strange_stores_and_damage_are_errors(
    tmp_path: Path, sessions: SessionStore, index: SearchIndex
) -> None:
    """Each names its problem, and a rebuild repairs all of them."""
    _made(sessions, index)
    for statement, problem in (
        ("DELETE FROM docs WHERE message = 3", "counts 30 messages but contains 29"),
        ("UPDATE state SET store = 'x'", "belongs to another store"),
        ("DROP TABLE docs", "cannot be read"),
    ):
        _harm(index, statement)
        (finding,) = check(tmp_path / "index.db", sessions.feed)
        assert problem in finding.problem
        assert finding.severity == "error"
        assert finding.repair is not None
        finding.repair()
    index.files[0].write_bytes(b"no database" * 1000)
    (finding,) = check(tmp_path / "index.db", sessions.feed)
    assert "cannot be read (file is not a database)" in finding.problem
