"""The helper of hooks answers faster, is never required, and ends by itself."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import memoranda
from memoranda.cli.hooks import helper_protocol
from memoranda.cli.hooks.helper_files import HelperFiles
from memoranda.integrations.hooks.prompt_evidence import PromptStore
from memoranda.memory.record.scope import Scope
from memoranda.support.home import Home
from tests.cli.hosts.helper_processes import ANSWER, PROMPT, HookProcesses, copy_program, fill
from tests.cli.terminal import Terminal
from tests.timing import GIVE_UP, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not helper_protocol.IS_SUPPORTED, reason="this system has no helper"),
]


@pytest.fixture
def home() -> Iterator[Path]:
    # The path of a socket has at most about 100 characters, and that of a test's directory may be longer.
    with TemporaryDirectory() as directory:
        fill(Path(directory) / "home")
        yield Path(directory) / "home"


@pytest.fixture
def hooks(home: Path) -> Iterator[HookProcesses]:
    processes = HookProcesses(home)
    yield processes
    processes.stop()


def _answered_by(hooks: HookProcesses) -> int | None:
    """The process of the helper that gave the last answer; None when the hook found it itself."""
    process = hooks.last_call().get("helper")
    return process if isinstance(process, int) else None


def _end_of(process: subprocess.Popen[bytes]) -> int:
    return process.wait(GIVE_UP)


def _socket_of(hooks: HookProcesses) -> Path:
    """The socket of the helper for the program that runs the tests."""
    (path,) = (hooks.home / "run").glob("*.sock")
    return path


def test_the_first_call_starts_a_helper_that_answers_the_next_ones(hooks: HookProcesses) -> None:
    """With the same words, for every host and event; status and doctor say that it runs, and explain its answers."""
    own = hooks.prompt()
    assert ANSWER in own and _answered_by(hooks) is None
    wait_until(lambda: ANSWER in hooks.prompt() and _answered_by(hooks) is not None)
    (helper,) = hooks.helpers()
    assert hooks.prompt() == own and _answered_by(hooks) == helper.process
    assert hooks.prompt(event="SessionStart") == "" and _answered_by(hooks) == helper.process
    terminal = Terminal(hooks.home)
    assert f"Helper: process {helper.process}, version {memoranda.__version__}" in terminal.ok("hook", "status")
    assert f"with the helper (process {helper.process})" in terminal.ok("hook", "status", "--why")
    assert f"Helper: process {helper.process}" in terminal.ok("doctor")
    shown = json.loads(terminal.ok("doctor", "--json"))["hook_helpers"]
    assert [each["process"] for each in shown] == [helper.process]
    os.kill(helper.process, signal.SIGTERM)
    wait_until(lambda: not list((hooks.home / "run").iterdir()))
    assert "Helper: none; the next prompt starts one." in terminal.ok("hook", "status")


def test_a_prompt_that_a_helper_answers_loads_next_to_nothing(hooks: HookProcesses) -> None:
    """The host waits for Python and a socket."""
    helper = hooks.start_helper()
    code = (
        "import os, sys; end = os._exit\n"
        "os._exit = lambda code: (print(*sys.modules, file=sys.stderr), end(code))\n"
        "sys.argv = ['memoranda', 'hook', *sys.argv[1:]]\nfrom memoranda.__main__ import main\nmain()"
    )
    loaded: set[str] = set()

    def is_answered_by_helper() -> bool:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, "codex", "UserPromptSubmit", "--home", str(hooks.home)],
            input=json.dumps({"prompt": PROMPT}).encode(), env=hooks.environment, capture_output=True, check=True,
        )  # fmt: skip
        loaded.clear()
        loaded.update(done.stderr.decode().split())
        return _answered_by(hooks) == helper.pid

    wait_until(is_answered_by_helper)
    ours = {name for name in loaded if name.startswith("memoranda.")}
    assert len(ours) <= 14
    assert not loaded & {"json", "re", "typing", "pathlib", "socket", "threading", "subprocess", "sqlite3", "logging"}


def test_a_killed_helper_is_not_missed_and_replaced(hooks: HookProcesses) -> None:
    """Its socket is still there; so is what a killed helper of another program left, which the next one removes."""
    helper = hooks.start_helper()
    helper.kill()
    helper.wait()
    assert _socket_of(hooks).exists() and hooks.helpers() == []
    assert ANSWER in hooks.prompt() and _answered_by(hooks) is None
    stale = HelperFiles(hooks.home / "run", "hooks-00000000")
    for path in (stale.lock, stale.socket, stale.info):
        path.touch()
    hooks.allow_a_start()
    assert ANSWER in hooks.prompt()
    wait_until(lambda: ANSWER in hooks.prompt() and _answered_by(hooks) not in (None, helper.pid))
    assert len(list((hooks.home / "run").iterdir())) == 3


def test_a_killed_hook_does_not_harm_the_helper(hooks: HookProcesses) -> None:
    """A connection that says nothing, half a request, or nonsense is dropped."""
    helper = hooks.start_helper("helper._CONNECTION_TIMEOUT = 0.2")
    for said in (b"", b"\0", b"\0\0\0\x09\0\0", b"\xff" * 64, b"\0\0\0\x04\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(_socket_of(hooks)))
            connection.sendall(said)
            connection.settimeout(GIVE_UP)
            # What the helper did not read makes the end of the connection an error.
            with suppress(ConnectionResetError):
                assert connection.recv(100) == b""
    wait_until(lambda: ANSWER in hooks.prompt() and _answered_by(hooks) == helper.pid)


def test_a_helper_that_hangs_costs_a_moment_and_not_the_answer(hooks: HookProcesses) -> None:
    """The hook does the work itself, and starts no second helper."""
    helper = hooks.start_helper()
    os.kill(helper.pid, signal.SIGSTOP)
    hooks.allow_a_start()
    assert ANSWER in hooks.prompt(helper_timeout=0.2) and _answered_by(hooks) is None
    assert [each.process for each in hooks.helpers()] == [helper.pid]


def test_a_helper_ends_when_an_answer_takes_far_too_long(hooks: HookProcesses) -> None:
    """So that it does not keep hooks waiting."""
    patch = "import time; helper._MAX_SECONDS_PER_ANSWER = 1\nanswer = helper.answer_and_log\n"
    patch += "helper.answer_and_log = lambda c, o, p, l: time.sleep(200) if len(p.prompt) > 9 else answer(c,o,p,l)"
    helper = hooks.start_helper(patch)
    assert ANSWER in hooks.prompt() and _answered_by(hooks) is None
    assert _end_of(helper) == -signal.SIGALRM


def test_of_several_helpers_that_start_at_once_one_stays(hooks: HookProcesses) -> None:
    """The others end before they have loaded anything."""
    processes = [hooks.start_process() for _ in range(4)]
    wait_until(lambda: sum(process.poll() is None for process in processes) == 1 and len(hooks.helpers()) == 1)
    (winner,) = (process for process in processes if process.poll() is None)
    wait_until(lambda: ANSWER in hooks.prompt() and _answered_by(hooks) == winner.pid)


def test_a_changed_program_gets_no_answers_of_the_old_one(tmp_path: Path, home: Path) -> None:
    """After an upgrade in place the helper ends, and the hook does the work itself."""
    hooks = HookProcesses(home, copy_program(tmp_path / "program"))
    try:
        helper = hooks.start_helper("helper._SECONDS_BETWEEN_CHECKS = 60")
        (tmp_path / "program" / "memoranda" / "search" / "search.py").touch()
        assert ANSWER in hooks.prompt() and _answered_by(hooks) is None
        assert _end_of(helper) == 0
    finally:
        hooks.stop()


def test_a_moved_program_has_a_helper_of_its_own(tmp_path: Path, home: Path) -> None:
    """The one at the old path ends by itself."""
    hooks = HookProcesses(home, copy_program(tmp_path / "program"))
    moved = HookProcesses(home, tmp_path / "moved")
    try:
        helper = hooks.start_helper()
        (tmp_path / "program").rename(tmp_path / "moved")
        assert ANSWER in moved.prompt() and _answered_by(moved) is None
        assert _end_of(helper) == 0
        wait_until(lambda: ANSWER in moved.prompt() and _answered_by(moved) not in (None, helper.pid))
    finally:
        hooks.stop()
        moved.stop()


def test_two_versions_have_two_helpers(tmp_path: Path, home: Path) -> None:
    """Each answers the hooks of its own version only."""
    old = HookProcesses(home, copy_program(tmp_path / "old", "0.0.9"))
    new = HookProcesses(home)
    try:
        first, second = old.start_helper(), new.start_helper()
        for _ in range(2):
            assert ANSWER in old.prompt() and _answered_by(old) == first.pid
            assert ANSWER in new.prompt() and _answered_by(new) == second.pid
        assert {each.version for each in new.helpers()} == {"0.0.9", memoranda.__version__}
        assert "version 0.0.9 (this is" in Terminal(home).ok("hook", "status")
    finally:
        old.stop()
        new.stop()


def test_settings_in_the_environment_have_a_helper_of_their_own(hooks: HookProcesses) -> None:
    """One that answers with other settings is not asked."""
    hooks.start_helper()
    other = HookProcesses(hooks.home, MEMORANDA_SEARCH_ANSWER_CHARS="5000", MEMORANDA_HOOKS_HELPER="on")
    assert ANSWER in other.prompt() and _answered_by(other) is None


def test_a_home_and_a_user_get_only_their_own(tmp_path: Path, hooks: HookProcesses) -> None:
    """A helper answers for one home, and for the user that the hook names."""
    helper = hooks.start_helper()
    secret = "The heron cluster of Ana listens on port 6001."
    fill(
        hooks.home, "ana", [("Which port did the heron cluster have?", secret), ("Rename the tree", "Done, a forest.")]
    )
    fill(tmp_path / "other", None, [("What is the weather like?", "Sunny with a light wind.")])
    for _ in range(2):
        mine, hers = hooks.prompt(), hooks.prompt(PROMPT, "--user", "ana")
        assert ANSWER in mine and secret not in mine
        assert secret in hers and ANSWER not in hers
        assert _answered_by(hooks) == helper.pid
    other = HookProcesses(tmp_path / "other", MEMORANDA_HOOKS_HELPER="off")
    assert other.prompt() == "" and _answered_by(other) is None


@pytest.mark.parametrize("value", ["off", *(pytest.param(each, marks=pytest.mark.torture) for each in ("false", "0"))])
def test_no_helper_is_started_when_it_is_turned_off(home: Path, value: str) -> None:
    """In the environment or in config.yaml."""
    for hooks in (HookProcesses(home, MEMORANDA_HOOKS_HELPER=value), HookProcesses(home)):
        assert ANSWER in hooks.prompt()
        assert not (home / "run").exists()
        (home / "config.yaml").write_text(f"hooks:\n  helper: {value}\n")
    assert "Helper: none; hooks.helper is off." in Terminal(home).ok("hook", "status")


def test_a_helper_that_is_turned_off_ends(hooks: HookProcesses) -> None:
    """Without another call."""
    helper = hooks.start_helper()
    Terminal(hooks.home).ok("config", "set", "hooks.helper", "off")
    assert _end_of(helper) == 0
    assert ANSWER in hooks.prompt() and _answered_by(hooks) is None


def test_a_setting_counts_from_the_next_prompt_on(hooks: HookProcesses) -> None:
    """The helper reads the file again when it changed."""
    with memoranda.open(hooks.home) as memory:
        memory.remember("Project uses pytest.")
    helper = hooks.start_helper()
    assert "Project uses pytest." in hooks.prompt(event="SessionStart")
    Terminal(hooks.home).ok("config", "set", "memory.memory_enabled", "false")
    assert hooks.prompt(event="SessionStart") == "" and _answered_by(hooks) == helper.pid
    (hooks.home / "config.yaml").write_text("memory: [broken")
    assert hooks.prompt(event="SessionStart") == ""
    assert hooks.last_call()["outcome"] == "error" and "config.yaml" in hooks.last_call()["reason"]


def test_an_idle_helper_ends_and_leaves_nothing(hooks: HookProcesses) -> None:
    """Its files go with it."""
    helper = hooks.start_process("helper._IDLE_SECONDS = 0.3")
    assert _end_of(helper) == 0
    assert list((hooks.home / "run").iterdir()) == []


def test_a_helper_completes_an_index_that_is_behind(hooks: HookProcesses) -> None:
    """Such as one that an upgrade made useless: hooks only read it, and reading all messages would make them late."""
    for file in hooks.home.glob("state.index.db.*"):
        file.unlink()
    hooks.start_helper("helper._INDEX_STEP = 3")

    def is_complete() -> bool:
        # A `Memory` would complete the index itself.
        with PromptStore(hooks.home / "state.db", Scope.everyone()) as store:
            return store.index.state().complete

    wait_until(is_complete)
    assert ANSWER in hooks.prompt() and "note" not in hooks.last_call()


def test_a_helper_ends_with_its_home(hooks: HookProcesses) -> None:
    """And does not create it again."""
    helper = hooks.start_helper()
    shutil.rmtree(hooks.home)
    assert _end_of(helper) == 0
    assert not hooks.home.exists()


def test_a_home_with_a_long_path_has_a_helper_too(tmp_path: Path) -> None:
    """A socket's path has a limit of 108 bytes, a home's has not."""
    home = tmp_path / ("long" * 30)
    fill(home)
    hooks = HookProcesses(home)
    try:
        helper = hooks.start_helper()
        assert ANSWER in hooks.prompt() and _answered_by(hooks) == helper.pid
    finally:
        hooks.stop()


def _listen(hooks: HookProcesses, reply: Callable[[socket.socket], None]) -> socket.socket:
    """Takes the place of the helper."""
    helper = hooks.start_helper()
    path = _socket_of(hooks)
    helper.kill()
    helper.wait()
    path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                reply(connection)

    threading.Thread(target=serve, daemon=True).start()
    return listener


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\0\0\0\x0f" + 3 * b"\0\0\0\x01x",
        *(
            pytest.param(each, marks=pytest.mark.torture)
            for each in (b"\0\0", b"\0\0\0\x05nonsense", b"\xff" * 100, b"HTTP/1.1 200 OK\r\n")
        ),
    ],
)
def test_a_nonsensical_answer_is_not_given_to_the_host(hooks: HookProcesses, said: bytes) -> None:
    """The hook does the work itself."""
    asked: list[bytes] = []

    def reply(connection: socket.socket) -> None:
        asked.append(connection.recv(1 << 16))
        connection.sendall(said)

    with _listen(hooks, reply):
        assert ANSWER in hooks.prompt() and _answered_by(hooks) is None
    assert PROMPT.encode() in asked[0]


_AS_NOBODY = """
import os, socket, sys
os.chdir(sys.argv[1])
if sys.argv[3] == "listen":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2])
    os.setgid(65534), os.setuid(65534)
    listener.listen()
    print("ready", flush=True)
    connection, _ = listener.accept()
    print(len(connection.recv(1 << 16)), flush=True)
else:
    os.setgid(65534), os.setuid(65534)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[2])
    connection.sendall(bytes.fromhex(sys.argv[4]))
    print(len(connection.recv(1 << 16)), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_the_socket_of_another_user_gets_no_prompt(hooks: HookProcesses) -> None:
    """Not a word is sent before its owner is known."""
    helper = hooks.start_helper()
    path = _socket_of(hooks)
    helper.kill()
    helper.wait()
    path.unlink()
    words = [sys.executable, "-c", _AS_NOBODY, str(path.parent), path.name, "listen"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"ready\n"
        assert ANSWER in hooks.prompt() and _answered_by(hooks) is None
        assert other.stdout.readline() == b"0\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_gets_no_answer(hooks: HookProcesses) -> None:
    """Even one who can open the socket and knows everything that a hook says."""
    hooks.start_helper()
    path = _socket_of(hooks)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    identity = helper_protocol.identity_of(str(hooks.home))
    fields = [
        identity,
        b"claude-code",
        b"UserPromptSubmit",
        b"",
        b"1.0",
        b"1",
        b"0.0",
        json.dumps({"prompt": PROMPT}).encode(),
    ]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        helper_protocol.send(ours, fields)
        request = theirs.recv(1 << 16)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(request)
        assert ANSWER.encode() in connection.recv(1 << 16)
    path.parent.chmod(0o711)
    path.chmod(0o666)
    words = [sys.executable, "-c", _AS_NOBODY, str(path.parent), path.name, "ask", request.hex()]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False, timeout=GIVE_UP)
    assert done.stdout in (b"", b"0\n")


def test_a_helper_creates_no_home(tmp_path: Path) -> None:
    """It ends at once."""
    missing = HookProcesses(tmp_path / "missing")
    assert _end_of(missing.start_process()) == 0
    assert not missing.home.exists()


def test_the_helper_of_this_program_is_found_by_its_name(home: Path) -> None:
    """Whatever differs in program, home, user or settings gives another name."""
    files = HelperFiles.of(Home(home))
    assert files.name == helper_protocol.name_of(helper_protocol.identity_of(str(home)))
    assert files.name != HelperFiles.of(Home(home / "profiles" / "work", "work")).name
