"""Files of OpenClaw for these tests, in its formats: transcripts, databases, workspaces."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.home.config import set_secret
from memoranda.importers.openclaw.migration.steps import MigrationTarget
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills.store import SkillStore
from memoranda.support.home import Home

SESSION = "3f1c2b7a-0d9e-4c55-8a42-5b1e6c7d8e9f"
KEY = "agent:main:main"
OPENAI = "sk-proj-T3stT3stAb3dEf6hIj9kLmN0pQr5StUv8wXy1zAb2"
TELEGRAM = "7654321:AAHq8dK2lVtY0rN4mZxW6cE1bS9uJ3pG5oQ"
GATEWAY = "5f0e1d2c3b4a59687766554433221100ffeeddccbbaa9988"

EVENTS: list[dict[str, Any]] = [
    {"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-05-01T08:00:00.000Z", "cwd": "/home/ann/boat"},
    {"type": "model_change", "id": "m1", "parentId": None, "timestamp": "2026-05-01T08:00:00.100Z",
     "provider": "anthropic", "modelId": "claude-opus-4-6"},
    {"type": "message", "id": "u1", "parentId": "m1", "timestamp": "2026-05-01T08:00:01.000Z",
     "message": {"role": "user", "content": [{"type": "text", "text": "Where is the anchor?"}],
                 "timestamp": 1777622401000}},
    {"type": "message", "id": "a1", "parentId": "u1", "timestamp": "2026-05-01T08:00:03.000Z",
     "message": {"role": "assistant", "content": [
         {"type": "thinking", "thinking": "I should look it up."},
         {"type": "text", "text": "Let me see."},
         {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "stores.md"}}],
         "api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-6",
         "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0}, "stopReason": "toolUse"}},
    {"type": "message", "id": "t1", "parentId": "a1", "timestamp": "2026-05-01T08:00:04.000Z",
     "message": {"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "isError": False,
                 "content": [{"type": "text", "text": "anchor: locker 4"},
                             {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}]}},
    {"type": "custom", "customType": "model-snapshot", "data": {}, "id": "c1", "parentId": "t1",
     "timestamp": "2026-05-01T08:00:04.500Z"},
    {"type": "message", "id": "a2", "parentId": "c1", "timestamp": "2026-05-01T08:00:05.000Z",
     "message": {"role": "assistant", "content": [{"type": "text", "text": "In locker 4."}], "stopReason": "stop"}},
    {"type": "compaction", "id": "k1", "parentId": "a2", "timestamp": "2026-05-01T09:00:00.000Z",
     "summary": "The anchor is in locker 4.", "firstKeptEntryId": "a2", "tokensBefore": 90000},
]  # fmt: skip

CONFIG = """{
  // The harbour office
  agents: {
    defaults: { workspace: "%WORKSPACE%", model: { primary: 'anthropic/claude-opus-4-6' } },
    entries: { main: { name: "main" }, work: { name: "work" }, },
  },
  gateway: { port: 18789, auth: { mode: "token", token: "%GATEWAY%" } },
  channels: { telegram: { botToken: "%TELEGRAM%", dmPolicy: "pairing" } },
  models: { providers: { openai: { apiKey: "${OPENAI_API_KEY}", baseUrl: "https://api.openai.com/v1" } } },
}
"""

MEMORY = """# MEMORY.md - Long-Term Memory

## Boat

- The **Nordlicht** lies in berth 12.
- Diesel: from Laboe
  - never from Strande
- The weather key is %OPENAI%

The harbour master is called Jens.

```sh
ssh nas 'zpool status'
```

| sail | year |
|---|---|
| genoa | 2019 |
"""

USER = """# USER.md

<!-- observed: 2026-10-01 | status: active -->

- Always answer in German.

<!-- observed: 2026-01-01 | status: superseded -->

- Always answer in English.

- **Timezone:**
"""

SKILL = "---\nname: tide-table\ndescription: Look up the tides for Kiel.\n---\n\n# Tides\n\nRun scripts/tides.sh.\n"


def make_openclaw(root: Path) -> Path:
    """A directory of OpenClaw with a workspace, a skill, settings, credentials and one transcript."""
    workspace = root / "workspace"
    texts: Mapping[str, str] = {
        "openclaw.json": CONFIG.replace("%WORKSPACE%", str(workspace)).replace("%GATEWAY%", GATEWAY),
        ".env": f"OPENAI_API_KEY={OPENAI}\nTELEGRAM_BOT_TOKEN={TELEGRAM}\n",
        "workspace/MEMORY.md": MEMORY.replace("%OPENAI%", OPENAI),
        "workspace/USER.md": USER,
        "workspace/SOUL.md": "# Soul\n\nYou are calm.\n",
        "workspace/AGENTS.md": "# How we work\n\nAsk before you sail.\n",
        "workspace/TOOLS.md": f"The camera is cam-2. Its bot is {TELEGRAM}.\n",
        "workspace/memory/2026-11-14.md": "# 2026-11-14\n\n- Ordered a new genoa.\n",
        "workspace/memory/2026-11-13.md": "# 2026-11-13\n\n- Checked the bilge pump.\n",
        "workspace/memory/dreaming/light.md": "A dream of the sea.\n",
        "workspace/skills/tide-table/SKILL.md": SKILL,
        "workspace/skills/tide-table/scripts/tides.sh": "echo high\n",
        "workspace-work/MEMORY.md": "- The office closes at six.\n",
        "cron/jobs.json": '{"jobs": [{"name": "tides", "token": "abc123def456"}]}',
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("%TELEGRAM%", TELEGRAM), "utf-8")
    (root / "workspace" / "skills" / "tide-table" / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (root / "credentials").mkdir()
    (root / "credentials" / "whatsapp.json").write_text('{"noiseKey": "AAAA"}')
    write_transcript(root, EVENTS)
    return root


def write_transcript(root: Path, events: Sequence[Mapping[str, Any]], name: str = f"{SESSION}.jsonl") -> Path:
    """A transcript as it was kept until the summer of 2026, and the list of sessions beside it."""
    file = root / "agents" / "main" / "sessions" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
    entry = {KEY: {"sessionId": SESSION, "updatedAt": 1777622403000, "displayName": "The anchor"}}
    file.with_name("sessions.json").write_text(json.dumps(entry), "utf-8")
    return file


def write_database(root: Path, events: Sequence[Mapping[str, Any] | bytes | str]) -> Path:
    """The same in a database, as it has been kept since; bytes are a packed event."""
    file = root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT,"
            " label TEXT, display_name TEXT);"
            "CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, previous_session_id TEXT,"
            " created_at INTEGER, started_at INTEGER, channel TEXT, model TEXT, display_name TEXT);"
            "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,"
            " event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq));"
        )
        database.execute(
            "INSERT INTO session_nodes VALUES (?, ?, '{}', NULL, 'The anchor')", (KEY, SESSION)
        )  # fmt: skip
        database.execute(
            "INSERT INTO session_windows VALUES (?, ?, NULL, 1777622400000, NULL, NULL, NULL, NULL)", (SESSION, KEY)
        )
        for seq, event in enumerate(events):
            packed = event if isinstance(event, bytes) else None
            plain = None if packed else event if isinstance(event, str) else json.dumps(event)
            database.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, NULL, NULL)",
                (SESSION, seq, plain, 1777622400000 + seq, packed),
            )
        database.commit()
    return file


def migration_target(
    root: Path, settings: CuratedSettings | None = None, secrets: Mapping[str, str] | None = None
) -> MigrationTarget:
    """A home to move into."""
    home = Home(root)
    return MigrationTarget(
        root, MemoryStore(home.memories(), settings), SkillStore(home.skills()), secrets or {},
        lambda name, value: set_secret(home, name, value),
    )  # fmt: skip


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a directory with its content."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }  # fmt: skip
