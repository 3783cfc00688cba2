"""A plugin as another developer writes one, which records every call of the contract in `calls.jsonl` of its home."""

import json
from pathlib import Path
from typing import Any

from memoranda.home import config
from memoranda.support.home import Home
from tests.external.plugins import add_plugin

SOURCE = """
import json
from pathlib import Path
from agent.memory_provider import MemoryProvider


class Recorder(MemoryProvider):
    @property
    def name(self):
        return "recorder"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self.file = Path(kwargs["hermes_home"]) / "calls.jsonl"
        self.note("initialize", session_id, kwargs["platform"])
        FAIL_START

    def get_tool_schemas(self):
        return [{"name": "recorder_find", "description": "Find.", "parameters": {"type": "object"}}]

    def handle_tool_call(self, tool_name, args, **kwargs):
        FAIL_TOOL
        return json.dumps({"success": True, "found": "Otto"})

    def system_prompt_block(self):
        return "The recorder remembers."

    def prefetch(self, query, *, session_id=""):
        self.note("prefetch", query, session_id)
        FAIL_RECALL
        return "The zebra is called Otto. " * 500

    def queue_prefetch(self, query, *, session_id=""):
        self.note("queue_prefetch", query)

    def sync_turn(self, user_content, assistant_content, *, session_id=""):
        self.note("sync_turn", user_content, assistant_content)
        FAIL_SYNC

    def on_turn_start(self, turn_number, message, **kwargs):
        self.note("on_turn_start", turn_number, message)

    def on_session_end(self, messages):
        self.note("on_session_end", len(messages))

    def on_session_switch(self, new_session_id, *, parent_session_id="", reset=False, **kwargs):
        self.note("on_session_switch", new_session_id, parent_session_id, reset, kwargs.get("reason"))

    def on_pre_compress(self, messages):
        self.note("on_pre_compress", len(messages) > 0)
        return "The recorder wants Otto in the summary."

    def on_memory_write(self, action, target, content):
        self.note("on_memory_write", action, target, content)

    def on_delegation(self, task, result, *, child_session_id="", **kwargs):
        self.note("on_delegation", task, result)

    def shutdown(self):
        self.note("shutdown")

    def get_config_schema(self):
        return [
            {"key": "region", "description": "Where", "choices": ["eu", "us"], "default": "eu"},
            {"key": "api_key", "description": "Key", "secret": True, "required": True, "env_var": "RECORDER_KEY"},
        ]

    def note(self, *call):
        with self.file.open("a") as file:
            file.write(json.dumps(call) + "\\n")


def register(ctx):
    ctx.register_memory_provider(Recorder())
"""
MANIFEST = "name: recorder\ndescription: Records every call.\nversion: 1.0.0\n"
_FAILURES = ("FAIL_START", "FAIL_TOOL", "FAIL_RECALL", "FAIL_SYNC")


def recorder_home(home: Path, *, use: bool = True, **failures: str) -> Path:
    """A home with the plugin; `fail_recall="raise OSError"` and the like make one of its hooks fail."""
    source = SOURCE
    for name in _FAILURES:
        source = source.replace(name, failures.get(name.lower(), "pass"))
    add_plugin(home, "recorder", source, MANIFEST)
    if use:
        config.set_value(Home.at(home), "memory.provider", "recorder")
    return home


def calls(home: Path, *hooks: str) -> list[list[Any]]:
    """The calls that were recorded, in their order; only those of some hooks, if these are named."""
    file = home / "calls.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [call for call in found if not hooks or call[0] in hooks]
