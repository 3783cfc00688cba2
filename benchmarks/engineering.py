"""Reads `engineering_questions.txt`: sessions of an engineering team, questions about them, and prompts for work."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("engineering_questions.txt")
_ROLES = {"u": "user", "a": "assistant"}
_FIRST_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC)


def load_sets() -> list[dict[str, Any]]:
    """The questions, and the prompts that a standing instruction concerns, as two sets over the same sessions."""
    sessions: list[dict[str, Any]] = []
    questions: dict[str, list[dict[str, Any]]] = {"?": [], "!": []}
    for line in _FILE.read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "=":
            started = _FIRST_DAY + timedelta(days=len(sessions))
            sessions.append({"id": rest, "ts": started.isoformat(), "messages": []})
        elif mark in ("u:", "a:"):
            sessions[-1]["messages"].append({"role": _ROLES[mark[0]], "text": rest})
        elif mark in questions:
            gold, _, text = rest.partition(" | ")
            questions[mark].append({"store": "team", "q": text, "gold_sessions": gold.split(), "date": None})
    store = {"id": "team", "sessions": sessions}
    return [
        {"name": name, "stores": [store], "queries": questions[mark], "no_answer": []}
        for name, mark in (("engineering", "?"), ("instructions", "!"))
    ]
