"""Counts how much of our own code real calls pass through: files, folders, functions, calls, depth, changes of file.

    python benchmarks/call_paths.py                        # every call
    python benchmarks/call_paths.py search import --files  # two of them, with the files they pass through
    python benchmarks/call_paths.py --json

Each call runs in a separate process, in a throw-away home, under `sys.setprofile`. Only functions in src/memoranda
count, and only in the thread that makes the call. A warm call is made twice before it is counted. A first call is not:
it also counts the modules that it loads.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import memoranda
from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.importers.importer import Importer, import_lock
from memoranda.integrations.hooks.answers import answer_event, read_payload
from memoranda.integrations.hooks.capture import capture_transcript
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.support.projects import project_of

_PACKAGE = f"{Path(memoranda.__file__).parent}/"
_COLUMNS = ("files", "folders", "functions", "calls", "depth", "changes")

Call = Callable[[], object]


class CallCounter:
    """Counts the functions of this package that run between `__enter__` and `__exit__`."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._functions: set[CodeType] = set()
        self._calls = self._depth = self._max_depth = self._changes = 0
        self._last_file: str | None = None

    def __enter__(self) -> "CallCounter":
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def figures(self) -> dict[str, int]:
        folders = {path.split("/")[0] for path in self.files}
        counts = (len(self.files), len(folders), len(self._functions), self._calls, self._max_depth, self._changes)
        return dict(zip(_COLUMNS, counts, strict=True))

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(_PACKAGE):
            return
        if event == "return":
            self._depth -= 1
            return
        self._calls += 1
        self._depth += 1
        self._max_depth = max(self._max_depth, self._depth)
        self._functions.add(frame.f_code)
        self.files.add(path[len(_PACKAGE) :])
        self._changes += self._last_file not in (None, path)
        self._last_file = path


def _append(root: Path) -> Call:
    session = _home_with_two_sessions(root).session(source="cli")
    return lambda: session.record("assistant", "The pool is small.")


def _curated_add(root: Path) -> Call:
    memory = memoranda.open(root / "home")
    facts = iter(range(100))
    return lambda: memory.call("memory", {"action": "add", "target": "memory", "content": f"Shop {next(facts)} opens."})


def _new_session(root: Path) -> Call:
    memory = _home_with_two_sessions(root)
    return lambda: memory.session(source="cli")


def _search(root: Path) -> Call:
    memory = _home_with_two_sessions(root)
    return lambda: memory.search("heron port")


def _model_search(root: Path) -> Call:
    memory = _home_with_two_sessions(root)
    return lambda: memory.call("session_search", {"query": "heron port"})


def _prompt_hook(root: Path) -> Call:
    return _prompt_hook_for(root, "hello heron cluster what")


def _prompt_hook_with_evidence(root: Path) -> Call:
    return _prompt_hook_for(root, "Which port did the heron cluster have?")


def _prompt_hook_for(root: Path, prompt: str) -> Call:
    memory = _home_with_two_sessions(root)
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt, "cwd": str(root)})
    return lambda: answer_event(HomeConfig(memory.home), None, read_payload(event.encode()), "claude-code")


def _capture_hook(root: Path) -> Call:
    memory = memoranda.open(root / "home")
    transcript = _write_transcript(root, 4)
    capture_transcript(memory, transcript, "claude-code")
    _write_transcript(root, 5)
    return lambda: capture_transcript(memory, transcript, "claude-code")


def _import(root: Path) -> Call:
    memory = memoranda.open(root / "home")
    transcript = _write_transcript(root, 6)

    def run() -> None:
        with import_lock(memory.home.root, 1.0):
            reader = ClaudeCode()
            importer = Importer(memory.home.root, memory.sessions, project=project_of)
            importer.apply(reader, reader.scan(transcript))
            importer.close()

    return run


def _warm_import(root: Path) -> Call:
    _import(root / "first")()
    return _import(root / "second")


CALLS: dict[str, tuple[str, Callable[[Path], Call], bool]] = {
    "append": ("append a message", _append, True),
    "curated-add": ("curated add, tool to file", _curated_add, True),
    "new-session": ("new session", _new_session, True),
    "search": ("search, warm, 2 sessions", _search, True),
    "model-search": ("the same by a model, through the filter", _model_search, True),
    "prompt-hook": ("UserPromptSubmit hook, nothing to say", _prompt_hook, True),
    "prompt-hook-evidence": ("UserPromptSubmit hook with evidence", _prompt_hook_with_evidence, True),
    "capture-hook": ("capture hook, 1 new line", _capture_hook, False),
    "import": ("import of 6 lines, first in a process", _import, False),
    "import-warm": ("import of 6 lines, warm", _warm_import, False),
}
"""By name: a title, a function that prepares the call, and whether to make it twice before counting."""


def _home_with_two_sessions(root: Path) -> Any:
    memory = memoranda.open(root / "home")
    for question, reply in (
        ("Why does the checkout time out?", "The pool has five connections; the checkout needs more."),
        ("Which port has the heron cluster?", "The heron cluster listens on port 5433."),
    ):
        session = memory.session(source="cli")
        session.record("user", question)
        session.record("assistant", reply)
    memory.remember("The shop uses PostgreSQL 16.")
    memory.sessions.index.catch_up()
    return memory


def _write_transcript(root: Path, lines: int) -> Path:
    """Write the first lines of a Claude Code transcript of a session in a git repository with a remote."""
    repository = root / "shop"
    if not repository.exists():
        repository.mkdir(parents=True)
        for command in ("init -q .", "remote add origin git@example.com:ann/shop.git"):
            subprocess.run(["git", *command.split()], cwd=repository, check=True)
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "Begin"], cwd=repository, check=True)
    entries = [
        _line("user", "Why?"),
        _line(
            "assistant",
            [{"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "grep pool shop.toml"}}],
        ),
        _line("user", [{"type": "tool_result", "tool_use_id": "call_1", "content": "pool = 5", "is_error": False}]),
        _line("assistant", [{"type": "text", "text": "Too few."}]),
        _line("user", "How many?"),
        _line("assistant", [{"type": "text", "text": "Twenty."}]),
    ]
    path = root / "projects" / "0b7c1f52-6a43-4f0e-9a55-8f1f3d1f2a10.jsonl"
    path.parent.mkdir(exist_ok=True)
    entries_with_ids = [
        {**entry, "uuid": f"u{number}", "cwd": str(repository), "sessionId": path.stem}
        for number, entry in enumerate(entries[:lines])
    ]
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries_with_ids))
    return path


def _line(role: str, content: Any) -> dict[str, Any]:
    message = {"role": role, "content": content} | ({"model": "claude-opus-4-6"} if role == "assistant" else {})
    return {
        **{"parentUuid": None, "isSidechain": False, "type": role, "timestamp": "2026-03-01T10:00:00.000Z"},
        **{"userType": "external", "version": "2.1.197", "gitBranch": "main", "message": message},
    }


def count(name: str) -> dict[str, Any]:
    """Make one call in this process, and count the code that it passes through."""
    title, prepare, warm = CALLS[name]
    with TemporaryDirectory(prefix="memoranda-paths-", ignore_cleanup_errors=True) as root:
        call = prepare(Path(root))
        # The second call is the first that meets what the first one remembered.
        for _ in range(2 if warm else 0):
            call()
        with CallCounter() as counter:
            call()
    return {"call": name, "title": title, **counter.figures(), "paths": sorted(counter.files)}


def count_in_process(name: str) -> dict[str, Any]:
    """Make one call in a separate process, so that modules loaded by other calls do not matter."""
    worker = [sys.executable, __file__, "--worker", name]
    return dict(json.loads(subprocess.run(worker, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="*", metavar="CALL", help=f"one of {', '.join(CALLS)}; all by default")
    parser.add_argument("--files", action="store_true", help="also list the files")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=CALLS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(count(options.worker)))
        return
    if unknown := set(options.calls).difference(CALLS):
        parser.error(f"There is no call {', '.join(sorted(unknown))}. The calls are: {', '.join(CALLS)}.")
    rows = [count_in_process(name) for name in options.calls or CALLS]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"| {'call':<38} | " + " | ".join(f"{column:>9}" for column in _COLUMNS) + " |")
    print(f"|{'-' * 40}|" + "|".join(f"{'-' * 10}:" for _ in _COLUMNS) + "|")
    for row in rows:
        print(f"| {row['title']:<38} | " + " | ".join(f"{row[column]:>9,}" for column in _COLUMNS) + " |")
    for row in rows if options.files else ():
        print("", f"{row['title']}:", *(f"  {path}" for path in row["paths"]), sep="\n")


if __name__ == "__main__":
    main()
