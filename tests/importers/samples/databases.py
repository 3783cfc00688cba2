"""The samples that are SQLite databases."""

from pathlib import Path

from tests.importers.samples import Sample, execute


def _grow_mem0(path: Path) -> int:
    """A memory whose vectors are elsewhere: only the history has its text."""
    return execute(
        path / "history.db",
        "INSERT INTO history SELECT 'h9', 'm9', NULL, 'Ann moved to Basel.', 'ADD', '2026-11-17T08:00:00+00:00',"
        " '2026-11-17T08:00:00+00:00', 0, NULL, 'user'",
    )


def _grow_langgraph(path: Path) -> int:
    return execute(
        path / "store.sqlite",
        "INSERT INTO store (prefix, key, value) VALUES ('memories.ann', 'm3', '{\"text\": \"Ann moved to Basel.\"}')",
    )


def _grow_openai_agents(path: Path) -> int:
    return execute(
        path / "conversations.db",
        "INSERT INTO agent_messages (session_id, message_data)"
        ' VALUES (\'ben-1\', \'{"role": "user", "content": "And no sugar."}\')',
    )


MEM0 = Sample(
    "mem0",
    messages=4,
    sessions={"mem0:notes-user=ann": 2, "mem0:notes-user=ann/agent=planner/run=r1": 1, "mem0:notes-user=ben": 1},
    known=(
        "mem0:notes-user=ben",
        "ec748550-26fb-4a11-ab6a-0233a1527d58",
        "2026-11-16T18:09:01.613483+00:00",
        "Ben prefers green tea.",
    ),
    grow=_grow_mem0,
)
LANGGRAPH = Sample(
    "langgraph",
    messages=11,
    sessions={
        "langgraph-thread-1": 6,
        "langgraph-thread-2": 2,
        "langgraph:notes-memories.ann": 2,
        "langgraph:notes-memories.ben": 1,
    },
    known=(
        "langgraph-thread-1",
        "13cbe929-0a3b-4052-836b-64d48c68b751",
        "2026-11-16T18:09:05.680954+00:00",
        "What is the weather in Basel?",
    ),
    grow=_grow_langgraph,
)
OPENAI_AGENTS = Sample(
    "openai-agents",
    messages=8,
    sessions={"openai-agents-ann-1": 6, "openai-agents-ben-1": 2},
    known=("openai-agents-ann-1", "ann-1:1:", "2026-11-16T18:10:36+00:00", "My staging database is called aurora-7."),
    grow=_grow_openai_agents,
)
