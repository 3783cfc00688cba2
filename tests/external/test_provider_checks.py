"""The doctor asks providers about their own files, whatever they do, and names none of them."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import memoranda.upkeep.doctor
from memoranda.errors import ProviderError
from memoranda.external.checks import check_providers
from memoranda.external.holographic.fact_store import FactStore
from tests.external.plugins import add_plugin, plain

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


@pytest.mark.slow
def test_a_bundled_provider_is_imported_only_where_it_has_files(tmp_path: Path) -> None:
    """A home without facts costs nothing; one with facts is checked even while another provider is in use."""
    program = (
        "import sys; from pathlib import Path; from memoranda.external.checks import check_providers;"
        "assert not list(check_providers(Path(sys.argv[1]), ()));"
        "assert 'memoranda.external.holographic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    (tmp_path / "holographic.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4_000)
    (tmp_path / "holographic.db").chmod(0o600)
    (issue,) = check_providers(tmp_path, ())
    assert (issue.severity, issue.path) == ("error", tmp_path / "holographic.db")


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


@pytest.mark.slow
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
    with closing(FactStore(tmp_path / "holographic.db")) as facts:
        facts.add("Ana Kovac keeps the notes in a paper folder")
    with closing(sqlite3.connect(tmp_path / "holographic.db")) as connection, connection:
        connection.execute("DELETE FROM fact_words")
    (issue,) = check_providers(tmp_path, ())
    assert issue.repair is not None
    assert "1 facts" in str(issue.repair())
    assert list(check_providers(tmp_path, ())) == []
    assert issue.repair() == ""
