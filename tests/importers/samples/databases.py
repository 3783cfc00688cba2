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
    messages=20,
    sessions={
        "langgraph:thread-1": 6,
        "langgraph:thread-2": 2,
    },
    known=(
        "langgraph:thread-1",
        "13cbe929-0a3b-4052-836b-64d48c68b751",
        "2026-11-16T18:09:05.680954+00:00",
        "What is the weather in Basel?",
    ),
    grow=_grow_langgraph,
)
OPENAI_AGENTS = Sample(
    "openai-agents",
    messages=8,
    sessions={"openai-agents:ann-1": 6, "openai-agents:ben-1": 2},
    known=("openai-agents:ann-1", "ann-1:1:", "2026-11-16T18:10:36+00:00", "My staging database is called aurora-7."),
    grow=_grow_openai_agents,
)


def _grow_llm(path: Path) -> int:
    """A turn that adds no more than its answer."""
    execute(
        path / "logs.db", "INSERT INTO messages VALUES ('b2:9', 'b2:ac014329beec8ff7ace22bea74c50f3c', 'user', NULL)"
    )
    execute(path / "logs.db", "INSERT INTO parts VALUES (99, 'b2:9', 0, 'text', NULL, 'And no sugar.', NULL)")
    return execute(
        path / "logs.db",
        "INSERT INTO turns (id, thread_id, parent_message_hash, tip_message_hash, model, datetime_utc) VALUES"
        " ('01z', '01m7pgpb7rbrzf40xs7wk9s11x', 'b2:9', 'b2:9', 'sample', '2026-11-18T06:00:00+00:00')",
    )


def _grow_goose(path: Path) -> int:
    return execute(
        path / "sessions.db",
        "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp) VALUES"
        " ('msg_9', '20261118_2', 'user', '[{\"type\":\"text\",\"text\":\"And no sugar.\"}]', 1794980000)",
    )


def _grow_open_webui(path: Path) -> int:
    """A message in the branch that is not shown; an import into a session that has branches cannot be undone."""
    message = '{"parentId": "00000000-0000-4000-8000-000000000004", "role": "user", "content": "And no sugar."}'
    return execute(
        path / "webui.db", f"UPDATE chat SET chat = json_set(chat, '$.history.messages.m9', json('{message}'))"
    )


def _grow_zed(path: Path) -> int:
    message = '{"User": {"id": "u9", "content": [{"Text": "And no sugar."}]}}'
    return execute(
        path / "threads.db",
        f"UPDATE threads SET data = json_insert(CAST(data AS TEXT), '$.messages[#]', json('{message}'))"
        " WHERE id LIKE '%1'",
    )


_GOOSE = "20261118_1"
_CHAT = "5f0c2f5e-8a53-4a52-9b0a-3f0a53a6c101"
_ZED = "0d6c5f1e-1111-4000-8000-000000000001"
_LLM = "01m7pgpb7rbrzf40xs7wk9s11x"

LLM = Sample(
    "llm",
    messages=20,
    sessions={
        f"llm-{_LLM}": 6,
        "llm-01m7pgpj98akrn8cmkfqhrz5q5": 8,
        "llm-01m7pgqa14dx269w1zm6xkzfa0": 4,
        "llm-01m7pgqbhtk33n9fht1fb1jbzn": 2,
    },
    known=(f"llm-{_LLM}", "01m7pgpetpd18hm6fw7dfa1dxf/answer", "2026-11-18T05:04:58.710166+00:00", "Port 8443."),
    grow=_grow_llm,
    skipped={"instructions of a program": 1},
)
GOOSE = Sample(
    "goose",
    messages=8,
    sessions={f"goose-{_GOOSE}": 6, "goose-20261118_2": 2},
    known=(
        f"goose-{_GOOSE}",
        "chatcmpl-1794978257979973137",
        "2026-11-18T05:04:17+00:00",
        "Port 8443, as set in gateway.toml.",
    ),
    grow=_grow_goose,
    skipped={"text that only the model saw": 3},
)
OPEN_WEBUI = Sample(
    "open-webui",
    messages=8,
    sessions={f"open-webui-{_CHAT}": 2, f"open-webui-{_CHAT}~00000000-0000-4000-8000-000000000002": 6},
    known=(
        f"open-webui-{_CHAT}",
        "/00000000-0000-4000-8000-000000000005",
        "2026-11-18T05:03:17+00:00",
        "The gateway listens on port 8443.",
    ),
    grow=_grow_open_webui,
)
ZED = Sample(
    "zed",
    messages=12,
    sessions={f"zed-{_ZED}": 8, "zed-0d6c5f1e-1111-4000-8000-000000000002": 4},
    known=(
        f"zed-{_ZED}",
        f"{_ZED}:6b1f0a52-5f0e-4c8e-9a51-0e3c2f8a1002",
        "2026-08-20T10:05:00+00:00",
        "Tea without sugar.",
    ),
    grow=_grow_zed,
    skipped={"event of a thread": 1},
)
DATABASES = [MEM0, LANGGRAPH, OPENAI_AGENTS, LLM, GOOSE, OPEN_WEBUI, ZED]
