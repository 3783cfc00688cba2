"""Records Claude Code answering from an earlier conversation, and draws the terminal as an animated SVG picture.

    pip install pyte
    npm install --prefix /tmp/claude @anthropic-ai/claude-code@2.1.197
    .venv/bin/python benchmarks/hosts/record_claude_code.py --claude /tmp/claude/node_modules/.bin/claude

The programs are real. The model is a script: in the first session it explains a fix, and later it repeats that
explanation only if Memoranda put it into the request; otherwise it says that it does not know, and the recording fails.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.machine import Machine
from benchmarks.hosts.terminal_picture import Recording, draw_animation
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest

PICTURE = Path(__file__).parent.parent.parent / "docs" / "pictures" / "claude-code.svg"
# The earlier sessions of the user: one of them has the answer.
PROBLEM = "The upload test is flaky: it fails about every fifth run. Find out why and fix it."
OTHER_SESSIONS = [
    ("Rename the parser module to reader", "Renamed it, and fixed eleven imports."),
    ("Why is the search page slow on a phone?", "It loads every icon of the font; it now loads the six it shows."),
    ("Add a column for the time zone of a customer", "Added it with a migration; old rows say UTC."),
    ("The nightly backup filled the disk", "It kept every copy. It now keeps seven."),
]
FIX = "Each pytest-xdist worker now has its own upload directory, named after worker_id"
EXPLANATION = f"Two workers delete each other's files. {FIX}; see tests/conftest.py."
QUESTION = "How did we fix the flaky upload test?"
ANSWER = f"From our session about the upload test: two workers deleted each other's files. {FIX} (tests/conftest.py)."
_KEY = "none"


def answer(request: ReceivedRequest) -> Reply:
    """Answers earlier prompts with their replies, and the question with the fix only if the request contains it."""
    if QUESTION not in request.text:
        replies = dict([*OTHER_SESSIONS, (PROBLEM, EXPLANATION)])
        return Reply(next((reply for prompt, reply in replies.items() if prompt in request.text), "Done."))
    return Reply(ANSWER if FIX in request.text else "I do not know.")


def record(root: Path, claude: str, server: ScriptedServer) -> Recording:
    """Has the earlier sessions on a new machine, then records the setup and the question."""
    settings = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": _KEY, "TERM": "xterm-256color", "PS1": "$ "}
    machine = Machine(root, {**settings, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
    programs = root / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(claude)
    (programs / "memoranda").symlink_to(Path(sys.executable).parent / "memoranda")
    machine.environment["PATH"] = f"{programs}:{machine.environment['PATH']}"
    _answer_first_questions(machine)
    for prompt in (PROBLEM, *(prompt for prompt, _ in OTHER_SESSIONS)):
        machine.run(["claude", "-p", prompt])
    with Recording(["bash", "--norc", "--noprofile"], machine.project, machine.environment) as terminal:
        terminal.wait_for("$ ")
        terminal.type("memoranda setup --yes")
        terminal.press_enter(until="resume:", seconds=4.0)
        terminal.type("clear; claude")
        terminal.press_enter(until="? for shortcuts", seconds=1.0)
        terminal.type(QUESTION)
        terminal.press_enter(until="tests/conftest.py)", seconds=5.0)
    return terminal


def _answer_first_questions(machine: Machine) -> None:
    """Answers what Claude Code asks a new user: theme, key, and whether the project can be trusted."""
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    answers = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [_KEY], "rejected": []},
        "projects": {str(machine.project): project},
    }
    (machine.user / ".claude.json").write_text(json.dumps(answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claude", default=shutil.which("claude"), help="the program; the one on the PATH by default")
    parser.add_argument("--output", type=Path, default=PICTURE, help="the picture to write")
    options = parser.parse_args()
    if not options.claude:
        raise SystemExit("claude is not on the PATH; install it with npm, or name it with --claude.")
    with TemporaryDirectory() as root, ScriptedServer(answer) as server:
        recording = record(Path(root), str(Path(options.claude).absolute()), server)
    title = "Claude Code answers from an earlier conversation"
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(draw_animation(recording.screens, title), "utf-8")
    print(f"Wrote {options.output} ({len(recording.screens)} screens).")


if __name__ == "__main__":
    main()
