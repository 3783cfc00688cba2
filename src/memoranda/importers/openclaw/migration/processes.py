"""Finds running processes of OpenClaw."""

import os
import re
import subprocess

_NAMES = frozenset(
    ("openclaw", "clawdbot", "moltbot", "openclaw-gateway", "openclaw.mjs", "clawdbot.mjs", "moltbot.mjs")
)
_RUNTIMES = frozenset(("node", "bun", "deno"))
_PS_TIMEOUT = 5.0


def find_openclaw_processes() -> list[int]:
    """Return the process ids of OpenClaw; empty also where processes cannot be listed."""
    try:
        output = subprocess.run(
            ["ps", "-axo", "pid=,command="], capture_output=True, timeout=_PS_TIMEOUT, check=False
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return []
    found = (line.strip().partition(" ") for line in output.splitlines())
    return [int(number) for number, _, command in found if number.isdigit() and is_openclaw_command(command)]


def is_openclaw_command(command: str) -> bool:
    """Whether a command line is OpenClaw's own: the program, or a JavaScript runtime that runs it."""
    words = command.split()[:4]
    if not words:
        return False
    program, *following = [os.path.basename(word) for word in words]
    if program in _NAMES:
        return True
    if program not in _RUNTIMES and not program.startswith("node"):
        return False
    script = next((index for index, word in enumerate(words[1:]) if not word.startswith("-")), None)
    if script is None:
        return False
    return following[script] in _NAMES or bool(re.search(r"/(?:openclaw|clawdbot|moltbot)/dist/", words[1:][script]))
