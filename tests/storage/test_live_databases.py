"""Nothing that runs beside open databases breaks them: each route, page and command leaves SQLite's locks alone."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from memoranda.cli.main import command as program
from memoranda.memory.checkpoints.store import open_checkpoints
from memoranda.service.http.routes import ROUTES
from tests.cli.test_server_commands import WORKING
from tests.service.http.running_service import RunningService, run_service
from tests.service.http.test_isolation import add_victim, build_request
from tests.service.viewer.example_home import fill
from tests.service.viewer.example_operation import fill_pages
from tests.service.viewer.page_urls import page_urls
from tests.service.viewer.running_viewer import run_viewer
from tests.storage.live_databases import LiveDatabases, live_databases

pytestmark = pytest.mark.slow

_STARTED_ELSEWHERE = {"feed_stream"}
"""A stream does not end."""
_MORE_COMMANDS = {
    "doctor": [],
    "doctor --deep": [],
    "doctor --fix": [],
    "backup": ["{folder}/backup.zip"],
    "restore": ["{folder}/backup.zip", "--replace"],
    "sync run": ["{folder}/shared"],
    "sync conflicts": [],
    "sessions vacuum": [],
    "sessions import": ["{folder}/exported.jsonl"],
    "key create": ["--scope", "read"],
    "key audit": [],
    "skills create": ["deploy", "{folder}/SKILL.md"],
    "skills show": ["deploy"],
    "skills undo": [],
    "memory approve": ["--all"],
    "import hermes": ["--source", "{folder}/home"],
    "forget --text deadlock": ["--dry-run"],
    "forget --text deadlock --yes": [],
    "forget --session s-two": ["--yes"],
}
_EVERY_DATABASE = {
    "checkpoints.db",
    "holographic.cache/holographic.db",
    "home.db",
    "state.db",
}

_KINDS = re.compile(
    r"state\.db|home\.db|checkpoints\.db"  # the record, the parts of a home, and checkpoints
    r"|state\.index\..*|holographic\.cache/.*|state\.vectors\..*"  # what searches messages, items and facts: caches
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningService]:
    """A service in this process, on a home with every kind of database."""
    with run_service(tmp_path / "home") as started:
        memory = started.service.memory_of(None)
        fill(memory)
        fill_pages(memory)
        with closing(open_checkpoints(memory.home.root)) as database:
            database.open()
        started.key("read")
        yield started


@pytest.fixture
def databases(running: RunningService, tmp_path: Path) -> Iterator[LiveDatabases]:
    """Every database of the home, open in this process, and another process that writes to them."""
    with live_databases(tmp_path / "home") as opened:
        assert opened.names() >= _EVERY_DATABASE
        yield opened


def test_a_home_has_few_kinds_of_database(databases: LiveDatabases) -> None:
    """A part has tables in `home.db`; a file of its own would need its own opener, checks and ways to forget."""
    assert [name for name in databases.names() if not _KINDS.fullmatch(name)] == []


def test_no_route_breaks_an_open_database(running: RunningService, databases: LiveDatabases) -> None:
    """After each request another process's writes are seen, and no open file of a database is deleted."""
    victim = add_victim(running, "default")
    client = running.client(running.key(user=victim.user))
    problems = {}
    for route in ROUTES:
        if route.name not in _STARTED_ELSEWHERE:
            answer = client.request(**build_request(route, victim))
            assert answer.status_code < 500, (route.name, answer.text)
            if found := databases.problems():
                problems[route.name] = found
    owner = running.client(running.key())
    for body in ({"text": "deadlock", "dry_run": True}, {"text": "deadlock"}):
        owner.post("/v1/forget", json=body).raise_for_status()
        if found := databases.problems():
            problems[f"forget {body}"] = found
    assert not problems


def test_no_page_breaks_an_open_database(tmp_path: Path) -> None:
    """After each page, the one that checks the home included."""
    with run_viewer(tmp_path / "home") as viewer:
        fill(viewer.memory)
        fill_pages(viewer.memory)
        client = viewer.client()
        with live_databases(tmp_path / "home") as databases:
            problems = {}
            for name, url in page_urls().items():
                client.get(url)
                if found := databases.problems():
                    problems[name] = found
    assert not problems


def test_no_command_breaks_a_database_that_its_process_has_open(
    running: RunningService, databases: LiveDatabases, tmp_path: Path
) -> None:
    """Commands run here in the process of the service, so that any lock they lose is one of the service."""
    memory, home, problems = running.service.memory_of(None), tmp_path / "home", {}
    (tmp_path / "shared").mkdir()
    (tmp_path / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploys.\n---\nRun make.\n")
    (tmp_path / "conversation.jsonl").write_text('{"role": "user", "content": "Imported", "timestamp": 1750000000}\n')
    (tmp_path / "exported.jsonl").write_text('{"id": "s-three", "source": "cli", "messages": []}\n')
    for session_id in ("s-one", "s-two"):
        memory.sessions.create_session(session_id, "cli")
    for name, arguments in (WORKING | _MORE_COMMANDS).items():
        filled = [part.format(conversation=tmp_path / "conversation.jsonl", folder=tmp_path) for part in arguments]
        answer = CliRunner().invoke(program, [*name.split(), *filled, "--home", str(home)])
        assert answer.exit_code in (0, 1, 2) and (answer.output or not answer.exit_code), (name, answer.exception)
        if found := databases.problems():
            problems[name] = found
    assert not problems
