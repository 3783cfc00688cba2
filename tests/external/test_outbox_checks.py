"""The doctor checks the jobs of providers, and repairs them without losing any."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError
from memoranda.external.checks import check_outbox, check_settings
from memoranda.external.outbox.outbox import Outbox
from memoranda.support.health_issues import HealthIssue
from tests.cli.terminal import Terminal

ARGS = {"user_content": "q" * 300, "assistant_content": "a"}


def _fill(home: Path, count: int, *, provider: str = "p", age: float = 0.0) -> None:
    with closing(Outbox(home, clock=lambda: time.time() - age)) as outbox:
        for number in range(count):
            outbox.put(provider, "turn", f"s{number}", ARGS, {}, key=f"{provider}{number}")
        outbox.release()


def _only(home: Path, active: str = "p") -> HealthIssue:
    (finding,) = check_outbox(home, (active,))
    return finding


def _change(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "outbox.db")) as connection, connection:
        connection.execute(statement)


def test_an_outbox_that_is_well_or_absent_has_no_findings(tmp_path: Path) -> None:
    """A job that was just queued is no issue, and checking creates nothing."""
    assert list(check_outbox(tmp_path, ("p",))) == []
    assert list(tmp_path.iterdir()) == []
    _fill(tmp_path, 3)
    assert list(check_outbox(tmp_path, ("p",))) == []


def test_a_job_that_waits_for_days_is_reported(tmp_path: Path) -> None:
    """With how much it is and since when; of a provider that is not in use as a note."""
    _fill(tmp_path, 3, age=3 * 86_400 + 60)
    assert "3 deliveries that p has not accepted, the oldest for 3 days" in _only(tmp_path).problem
    assert _only(tmp_path, "another").severity == "note"


def test_what_was_given_up_is_tried_again(tmp_path: Path) -> None:
    """It waits again, and the finding is gone."""
    _fill(tmp_path, 2)
    _change(tmp_path, "UPDATE jobs SET state = 'parked', last_error = 'no such user' WHERE id = 1")
    finding = _only(tmp_path)
    assert "1 parked deliveries to p: no such user" in finding.problem
    assert finding.repair is not None
    assert "1 are retried" in str(finding.repair())
    assert list(check_outbox(tmp_path, ("p",))) == []
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.backlog("p").waiting == 2


@pytest.mark.parametrize("change", ["payload = '{'", "payload = '[]'", "kind = 'nonsense'"])
def test_what_cannot_be_read_is_put_into_a_file(tmp_path: Path, change: str) -> None:
    """Before it leaves the queue; the rest continues."""
    _fill(tmp_path, 2)
    _change(tmp_path, f"UPDATE jobs SET {change} WHERE id = 1")
    finding = _only(tmp_path)
    assert finding.repair is not None
    finding.repair()
    assert list(check_outbox(tmp_path, ("p",))) == []
    (moved,) = tmp_path.glob("outbox.unreadable-*.jsonl")
    assert json.loads(moved.read_text())["key"] == "p:p0"
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None
        assert job.key == "p1"


def _damage(path: Path) -> None:
    """Write over a page in the middle of the file."""
    content = bytearray(path.read_bytes())
    page = 8192
    middle = len(content) // page // 2
    content[middle * page : middle * page + page] = b"\xff" * page
    path.write_bytes(content)


@pytest.mark.slow
def test_a_damaged_outbox_is_saved_row_by_row(tmp_path: Path) -> None:
    """As the error says that the doctor does; the damaged file stays beside it."""
    _fill(tmp_path, 400)
    _damage(tmp_path / "outbox.db")
    with pytest.raises(CorruptStoreError, match="memoranda doctor"), closing(Outbox(tmp_path)) as outbox:
        for number in range(400):
            outbox.put("p", "turn", "s", ARGS, {}, key=f"new{number}")
            outbox.backlog()
            outbox.claim("p")
    finding = _only(tmp_path)
    assert (finding.severity, finding.repair is not None) == ("error", True)
    assert finding.repair is not None
    told = str(finding.repair())
    assert "waiting deliveries" in told
    assert [found for found in check_outbox(tmp_path, ("p",)) if found.severity == "error"] == []
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.backlog("p").waiting > 300
    assert list(tmp_path.glob("outbox.db.damaged-*"))


def test_a_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    """It is named, and not replaced."""
    with closing(sqlite3.connect(tmp_path / "outbox.db")) as connection, connection:
        connection.execute("CREATE TABLE theirs (x)")
    (tmp_path / "outbox.db").chmod(0o600)
    before = (tmp_path / "outbox.db").read_bytes()
    finding = _only(tmp_path)
    assert ("not written by Memoranda" in finding.problem, finding.repair) == (True, None)
    assert (tmp_path / "outbox.db").read_bytes() == before
    (tmp_path / "outbox.db").write_bytes(b"no database at all, but long enough to be one" * 50)
    assert _only(tmp_path).repair is None


def test_an_outbox_of_a_newer_program_is_not_changed(tmp_path: Path) -> None:
    """Upgrading is the remedy."""
    _fill(tmp_path, 1)
    _change(tmp_path, "UPDATE schema_version SET version = 99")
    assert (_only(tmp_path).remedy, _only(tmp_path).repair) == ("upgrade Memoranda", None)


def test_settings_that_cannot_be_read_are_found(tmp_path: Path) -> None:
    """With the command that repairs them."""
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "p.json").write_text("{")
    (tmp_path / "providers" / "p.json").chmod(0o600)
    (tmp_path / "providers" / "p.status.json").write_text("{")
    (finding,) = check_settings(tmp_path)
    assert "provider setup p" in finding.remedy


def test_the_command_reports_and_repairs_it(tmp_path: Path) -> None:
    """In words and as JSON."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("provider", "setup", "holographic")
    _fill(terminal.home, 2, provider="holographic")
    _change(terminal.home, "UPDATE jobs SET state = 'parked', last_error = 'down'")
    result = terminal.run("doctor", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["can_mend"], "parked deliveries to holographic: down" in finding["problem"]) == (True, True)
    assert "fixed: 2 are retried" in terminal.ok("doctor", "--fix")
