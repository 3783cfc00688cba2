"""The doctor checks the jobs of providers, and repairs them without losing any.

The doctor asks providers about their own files, whatever they do, and names none of them.
"""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import memoranda.upkeep.doctor
from memoranda.errors import CorruptStoreError, ProviderError
from memoranda.external.checks import check_notifications, check_providers, check_settings
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.shared_facts import cache_path
from memoranda.external.outbox.outbox import Outbox
from memoranda.storage.health import check_store
from memoranda.storage.sqlite.database import PAGE_SIZE
from memoranda.support.health_issues import HealthIssue
from memoranda.upkeep.home_tables import checked_files
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin, plain

pytestmark = pytest.mark.slow

ARGS = {"user_content": "q" * 300, "assistant_content": "a"}


def _fill(home: Path, count: int, *, provider: str = "p", age: float = 0.0) -> None:
    with closing(Outbox(home, clock=lambda: time.time() - age)) as outbox:
        for number in range(count):
            outbox.put(provider, "turn", f"s{number}", ARGS, {}, key=f"{provider}{number}")
        outbox.release()


def _findings(home: Path, active: str = "p") -> list[HealthIssue]:
    return [*check_store(checked_files(home, (active,))[0]), *check_notifications(home)]


def _only(home: Path, active: str = "p") -> HealthIssue:
    (finding,) = _findings(home, active)
    return finding


def _change(home: Path, statement: str, file: str = "home.db") -> None:
    with closing(sqlite3.connect(home / file)) as connection, connection:
        connection.execute(statement)


def test_an_outbox_that_is_well_or_absent_has_no_findings(tmp_path: Path) -> None:
    """A job that was just queued is no issue, and checking creates nothing."""
    assert _findings(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    _fill(tmp_path, 3)
    assert _findings(tmp_path) == []


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
    assert _findings(tmp_path) == []
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.backlog("p").waiting == 2


@pytest.mark.parametrize("change", ["payload = '{'", "payload = '[]'", "kind = 'nonsense'"])
def test_what_cannot_be_read_is_put_into_a_file(tmp_path: Path, change: str) -> None:
    """Before it leaves the queue; the rest continues."""
    _fill(tmp_path, 2)
    _change(tmp_path, f"UPDATE notifications SET {change} WHERE id = 1", "state.db")
    finding = _only(tmp_path)
    assert finding.repair is not None
    finding.repair()
    assert _findings(tmp_path) == []
    (moved,) = tmp_path.glob("outbox.unreadable-*.jsonl")
    assert json.loads(moved.read_text())["key"] == "p0"
    with closing(Outbox(tmp_path)) as outbox:
        job = outbox.claim("p")
        assert job is not None
        assert job.key == "p1"


def _damage(path: Path) -> None:
    """Write over a page in the middle of the file."""
    content = bytearray(path.read_bytes())
    page = PAGE_SIZE
    middle = len(content) // page // 2
    content[middle * page : middle * page + page] = b"\xff" * page
    path.write_bytes(content)


def test_a_damaged_outbox_is_saved_row_by_row(tmp_path: Path) -> None:
    """As the error says that the doctor does; the damaged file stays beside it."""
    _fill(tmp_path, 400)
    _damage(tmp_path / "home.db")
    with pytest.raises(CorruptStoreError, match="memoranda doctor"), closing(Outbox(tmp_path)) as outbox:
        for number in range(400):
            outbox.put("p", "turn", "s", ARGS, {}, key=f"new{number}")
            outbox.backlog()
            outbox.claim("p")
    finding = _only(tmp_path)
    assert (finding.severity, finding.repair is not None) == ("error", True)
    assert finding.repair is not None
    told = str(finding.repair())
    assert " rows, which is all that could be read" in told
    assert [found for found in _findings(tmp_path) if found.severity == "error"] == []
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.backlog("p").waiting > 300
    assert list(tmp_path.glob("home.db.damaged-*"))


def test_a_file_of_another_program_is_not_changed(tmp_path: Path) -> None:
    """It is named, and not replaced."""
    with closing(sqlite3.connect(tmp_path / "home.db")) as connection, connection:
        connection.execute("CREATE TABLE theirs (x)")
    (tmp_path / "home.db").chmod(0o600)
    before = (tmp_path / "home.db").read_bytes()
    finding = _only(tmp_path)
    assert ("not written by Memoranda" in finding.problem, finding.repair) == (True, None)
    assert (tmp_path / "home.db").read_bytes() == before
    (tmp_path / "home.db").write_bytes(b"no database at all, but long enough to be one" * 50)
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


CHECKED = (
    "def check(self, hermes_home, **facts):\n"
    "    path = hermes_home + '/plain.db'\n"
    "    if not os.path.exists(path): return []\n"
    "    return [{'severity': 'error', 'path': path, 'problem': 'is damaged', 'remedy': 'fix', 'repairable': True}]",
    "def repair(self, issue, hermes_home, **facts):\n"
    "    os.remove(issue['path'])\n"
    "    return 'removed ' + os.path.basename(issue['path'])",
    "def initialize(self, session_id, **facts):\n    raise AssertionError('the doctor must not start a provider')",
)


def test_the_provider_in_use_reports_and_repairs_its_own_files(tmp_path: Path) -> None:
    """Without being started; the doctor shows what it reports, and runs its repair."""
    add_plugin(tmp_path, "plain", plain("plain", *CHECKED))
    assert list(check_providers(tmp_path, ("plain",))) == []
    (tmp_path / "plain.db").write_text("x")
    (issue,) = check_providers(tmp_path, ("plain",))
    assert (issue.severity, issue.path, issue.problem) == ("error", tmp_path / "plain.db", "is damaged")
    assert issue.repair is not None
    assert issue.repair() == "removed plain.db"
    assert list(check_providers(tmp_path, ("plain",))) == []


def test_a_hook_may_be_a_coroutine(tmp_path: Path) -> None:
    """As every other hook may; a report that says nothing is shown as a warning about the home."""
    methods = "async def check(self, hermes_home):\n    return [{}]", "async def repair(self, issue):\n    return 'x'"
    add_plugin(tmp_path, "plain", plain("plain", *methods))
    (issue,) = check_providers(tmp_path, ("plain",))
    assert (issue.severity, issue.path, issue.repair) == ("warning", tmp_path, None)
    assert "does not describe" in issue.problem


def test_a_plugin_that_is_not_in_use_is_not_even_imported(tmp_path: Path) -> None:
    """Whatever it would do; the doctor runs nothing that the user has not chosen."""
    add_plugin(tmp_path, "bomb", "# MemoryProvider\nraise SystemExit('boom')")
    assert list(check_providers(tmp_path, ())) == []
    assert list(check_providers(tmp_path, ("another",))) == []


def test_a_bundled_provider_is_imported_only_where_it_has_files(tmp_path: Path) -> None:
    """A home without facts costs nothing; one with facts is checked even while another provider is in use."""
    program = (
        "import sys; from pathlib import Path; from memoranda.external.checks import check_providers;"
        "assert not list(check_providers(Path(sys.argv[1]), ()));"
        "assert 'memoranda.external.holographic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    path = cache_path(tmp_path, "")
    path.parent.mkdir()
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4_000)
    path.chmod(0o600)
    (issue,) = check_providers(tmp_path, ())
    assert (issue.severity, issue.path) == ("warning", path)


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("def check(self, hermes_home):\n    raise ValueError('no idea')", "ValueError: no idea"),
        ("def check(self, hermes_home):\n    sys.exit(3)", "SystemExit"),
        ("def check(self, hermes_home):\n    return 'fine'", "answered with str instead of a list"),
        ("def check(self, hermes_home):\n    return ['damaged']", "ValueError: dictionary update sequence"),
    ],
)
def test_a_check_that_fails_is_an_issue_itself(tmp_path: Path, method: str, problem: str) -> None:
    """The rest of the examination is not disturbed."""
    add_plugin(tmp_path, "plain", plain("plain", method))
    (issue,) = check_providers(tmp_path, ("plain",))
    assert (issue.severity, issue.repair) == ("warning", None)
    assert problem in issue.problem


def test_a_provider_that_cannot_be_loaded_is_an_issue(tmp_path: Path) -> None:
    """It is the one in use, and the next session will be without it."""
    add_plugin(tmp_path, "bomb", "# MemoryProvider\nraise SystemExit('boom')")
    (issue,) = check_providers(tmp_path, ("bomb",))
    assert "bomb could not be loaded" in issue.problem


def test_unreadable_settings_do_not_stop_a_check(tmp_path: Path) -> None:
    """The check of settings files reports them; the provider is asked all the same."""
    add_plugin(tmp_path, "plain", plain("plain", *CHECKED))
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "plain.json").write_text("{")
    (tmp_path / "plain.db").write_text("x")
    assert [issue.problem for issue in check_providers(tmp_path, ("plain",))] == ["is damaged"]


def test_a_repair_that_fails_says_why(tmp_path: Path) -> None:
    """As an error that the doctor prints, not as a traceback."""
    refusing = "def repair(self, issue, hermes_home):\n    raise RuntimeError('in use')"
    add_plugin(tmp_path, "plain", plain("plain", CHECKED[0], refusing))
    (tmp_path / "plain.db").write_text("x")
    (issue,) = check_providers(tmp_path, ("plain",))
    assert issue.repair is not None
    with pytest.raises(ProviderError, match="plain could not repair it: RuntimeError: in use"):
        issue.repair()


def test_the_doctor_names_no_provider() -> None:
    """So that a new provider does not touch the doctor."""
    source = Path(memoranda.upkeep.doctor.__file__).read_text("utf-8")
    assert "holographic" not in source


def test_what_a_check_prints_does_not_spoil_the_json(tmp_path: Path) -> None:
    """It goes to standard error, so that a program can read what the doctor says."""
    printing = "def check(self, hermes_home):\n    print('hello'); os.write(1, b'hello'); return []"
    add_plugin(tmp_path, "plain", plain("plain", printing))
    (tmp_path / "config.yaml").write_text("memory:\n  provider: plain\n")
    command = [sys.executable, "-m", "memoranda", "--home", str(tmp_path), "doctor", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert isinstance(json.loads(done.stdout)["findings"], list)
    assert "hello" in done.stderr


def test_a_bundled_provider_repairs_its_files_through_the_contract(tmp_path: Path) -> None:
    """The doctor hands the report back, and the provider finds the issue again and repairs it."""
    with closing(FactStore(tmp_path, "")) as facts:
        facts.add("Ana Kovac keeps the notes in a paper folder")
    with closing(sqlite3.connect(cache_path(tmp_path, ""))) as connection, connection:
        connection.execute("DELETE FROM fact_words")
    (issue,) = check_providers(tmp_path, ())
    assert issue.repair is not None
    issue.repair()
    assert list(check_providers(tmp_path, ())) == []
    assert issue.repair() == ""
