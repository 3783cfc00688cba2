"""Names with credentials that an earlier version stored are replaced in the whole home by the doctor."""

import json
from pathlib import Path

import pytest

import memoranda
from memoranda.memory.record.passages import NameRepair
from memoranda.memory.record.scope import Scope
from memoranda.safety.redaction import Redactor
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from tests.external.diary import diary_home

# In the form of an issuer, put together here so that no scanner takes this file for a leak.
MARK = "ghp" + "_"
SESSION, SOURCE, PROJECT, MESSAGE, DELETED = (
    MARK + letter + "bC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a" for letter in "ABCDE"
)


def _earlier_home(root: Path) -> Path:
    """A home with names as earlier versions stored them: redaction of names did not exist."""
    home = diary_home(root)
    settings = (home / "config.yaml").read_text()
    (home / "config.yaml").write_text(settings + "\nsessions:\n  redact_secrets: false\n")
    with memoranda.open(home) as memory:
        memory.sessions.create_session("plain", "cli")
        memory.sessions.append_message("plain", "user", "An ordinary session.", external_id="m1")
        session = memory.session(session_id=SESSION, source=SOURCE)
        with session.turn("The heron cluster has port 5433.") as turn:
            turn.done("Noted.")
        session.todos.save([{"id": "1", "content": "Order tea", "status": "pending"}])
        memory.sessions.update_session(SESSION, project=f"/srv/{PROJECT}")
        memory.sessions.append_message(SESSION, "user", "Once more.", external_id=MESSAGE)
        memory.sessions.create_session("child", "subagent", parent_session_id=SESSION)
        session.branch("A branch").end()
        session.end()
        memory.sessions.create_session(DELETED, "cli")
        memory.sessions.delete_session(DELETED)
        memory.search("heron")
    (home / "logs").mkdir(exist_ok=True, mode=0o700)
    (home / "logs" / "hook-events.jsonl").write_text(json.dumps({"session_id": SESSION}) + "\n")
    (home / "config.yaml").write_text(settings)
    return home


def _leaks(home: Path) -> list[str]:
    files = [path for path in home.rglob("*") if path.is_file() and path.name != "diary.jsonl"]
    return sorted(str(path.relative_to(home)) for path in files if MARK.encode() in path.read_bytes())


@pytest.mark.slow
def test_the_doctor_replaces_old_names_everywhere(tmp_path: Path) -> None:
    """Rows, queues, logs and the index; callers then find their sessions by the ids that they always used."""
    home = _earlier_home(tmp_path / "home")
    assert {"state.db", "logs/hook-events.jsonl"} <= set(_leaks(home))
    (issue,) = [issue for issue in examine(Home(home)) if "credential" in issue.problem]
    assert issue.repair is not None
    report = str(issue.repair())
    # The file of the provider is not ours.
    assert report.startswith("replaced 5 names; diary.jsonl still has one")
    assert _leaks(home) == []
    home.chmod(0o700)
    assert [issue.problem for issue in examine(Home(home), lambda *_: None) if issue.severity != "note"] == []
    with memoranda.open(home) as memory:
        db = memory.sessions
        texts = [row["content"] for row in db.get_messages(SESSION)]
        assert texts == ["The heron cluster has port 5433.", "Noted.", "Once more."]
        assert not any(row.get("memoranda_damaged") for row in db.get_messages(SESSION))
        assert any(row["id"].startswith("redacted-") for row in db.list_sessions_rich(SOURCE))
        assert db.get_external_ids([SESSION], [MESSAGE]).keys() == {MESSAGE}
        child = db.get_session("child")
        assert child is not None and db.get_session(child["parent_session_id"]) == db.get_session(SESSION)
        assert db.conversation_todos(SESSION) is not None
        assert len(db.deleted_sessions([DELETED])) == 1
        assert db.search_messages("heron", source_filter=[SOURCE])
        assert [row["external_id"] for row in db.get_messages("plain")] == ["m1"]


def test_a_name_that_is_in_use_already_gets_a_number(tmp_path: Path) -> None:
    """A program may have used the same id since the update: nothing of either session is lost."""
    with memoranda.SessionDB(tmp_path / "state.db") as earlier:
        earlier.create_session(SESSION, "cli")
        earlier.append_message(SESSION, "user", "before", external_id=MESSAGE)
    redactor = Redactor()
    with memoranda.SessionDB(tmp_path / "state.db", redactor=redactor) as db:
        db.create_session(SESSION, "cli")
        db.append_message(SESSION, "user", "since")
        names = NameRepair(db.engine, Scope.everyone(), redactor).replace_names()
        assert [row["content"] for row in db.get_messages(SESSION)] == ["since"]
        assert [row["content"] for row in db.get_messages(names[SESSION])] == ["before"]
        assert names[SESSION] == f"{redactor.name(SESSION)}-2"
