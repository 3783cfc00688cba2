"""Holographic, which also writes down every turn that is delivered to it, with its key."""

import json
import os
from pathlib import Path
from typing import Any

from memoranda.external.holographic.provider import HolographicProvider
from tests.long_conversation import acknowledgements

NAME = "witnessed"
PLUGIN = """
from tests.long_conversation.provider import Witnessed


def register(context):
    context.register_memory_provider(Witnessed())
"""


class Witnessed(HolographicProvider):
    """Real recall, and a file with everything that was delivered."""

    @property
    def name(self) -> str:
        return NAME

    def initialize(self, session_id: str, **facts: Any) -> None:
        self._delivered_turns = Path(facts["hermes_home"]) / "told.jsonl"
        super().initialize(session_id, **facts)

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **facts: Any) -> None:
        line = json.dumps([facts["idempotency_key"], user_content, assistant_content]) + "\n"
        descriptor = os.open(self._delivered_turns, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def on_pre_compress(self, messages: list[dict[str, Any]], **facts: Any) -> str:
        acknowledgements.announce("compressing")
        return ""
