"""The home that the tests of the viewer look at: conversations of several agents, entries, proposals."""

import time

from memoranda.api.memory import Memory
from memoranda.integrations.hooks.log import HookLog
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.search.recall_log import GIVEN
from memoranda.support.origin import PERSON

HOUR = 3600.0
HOST_ID = "8c1f5c1e-0000-4000-8000-000000000001"
DEADLOCK, BRANCH, LONG = f"claude-code-{HOST_ID}", "branch-of-deadlock", "long-session"
COMPRESSED, CONTINUATION = "compressed", "compressed-2"

_READ_QUEUE = {"name": "read_file", "arguments": '{"path": "queue.py"}'}
_ANSWER = "Take the lock of the queue before that of the worker."


def fill(memory: Memory) -> None:
    """Fill the memory of one user."""
    now = time.time()
    db = memory.sessions
    db.create_session(
        DEADLOCK,
        "claude-code",
        title="Fix the deadlock",
        started_at=now - 2 * HOUR,
        model="opus",
        project="/home/ana/heron",
        host="claude-code",
        host_session_id=HOST_ID,
        directory="/home/ana/heron",
    )
    db.append_messages(
        DEADLOCK,
        [
            {"role": "user", "content": "How do we fix the deadlock in the heron queue?", "timestamp": now - 2 * HOUR},
            {
                "role": "assistant",
                "content": "Let me look at the lock order.",
                "timestamp": now - 2 * HOUR + 5,
                "tool_calls": [{"id": "call-1", "type": "function", "function": _READ_QUEUE}],
            },
            {
                "role": "tool",
                "content": "def take(self):\n    with self.lock: ...\n" * 20,
                "tool_call_id": "call-1",
                "tool_name": "read_file",
                "timestamp": now - 2 * HOUR + 6,
            },
            {"role": "assistant", "content": _ANSWER, "timestamp": now - 2 * HOUR + 20},
        ],
    )
    db.create_session("ferry", "telegram", title="Trip to Lisbon", started_at=now - 30 * HOUR)
    db.append_messages(
        "ferry",
        [
            {"role": "user", "content": "When does the ferry to Cacilhas leave?", "timestamp": now - 30 * HOUR},
            {"role": "assistant", "content": "Every 20 minutes.", "timestamp": now - 30 * HOUR + 10},
        ],
    )
    db.create_session(LONG, "codex", title="A long night", started_at=now - 80 * HOUR)
    db.append_messages(
        LONG,
        [
            {
                "role": "user" if number % 2 == 0 else "assistant",
                "content": f"Message {number} about the migration of the warehouse.",
                "timestamp": now - 80 * HOUR + number,
            }
            for number in range(240)
        ],
    )
    db.branch_session(DEADLOCK, BRANCH)
    _compress(memory, now - 5 * HOUR)
    log = HookLog(memory.home.root, started_at=now - 2 * HOUR - 1)
    log.begin("claude-code", "UserPromptSubmit", HOST_ID, "How do we fix the deadlock in the heron queue?")
    log.end(GIVEN, "1 conversation cleared the floor", {"given": [{"session_id": "ferry", "message_id": 5}]})
    for text in ("The staging database is called heron.", "Deploys happen on Tuesdays."):
        memory.curated.add("memory", text, PERSON)


def _compress(memory: Memory, at: float) -> None:
    """A conversation of two sessions, the second of which begins with a summary."""
    db = memory.sessions
    db.create_session(COMPRESSED, "cli", title="The invoice", started_at=at)
    first = [("user", "Write the invoice for Ana."), ("assistant", "It is 120 euros."), ("user", "Add the tax.")]
    for number, (role, content) in enumerate(first):
        last = db.append_message(COMPRESSED, role, content, timestamp=at + number)
    db.rotate_session(
        COMPRESSED, CONTINUATION, [Summary("The invoice is 120 euros."), KeptMessage(last)], last_seen=last
    )
    db.append_message(CONTINUATION, "assistant", "With the tax it is 142.80 euros.", timestamp=at + 60)
