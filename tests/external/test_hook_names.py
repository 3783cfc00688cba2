"""The manager has the methods that agents written for Hermes call, and each does what its name says."""

import json
from pathlib import Path

from memoranda.external.manager import MemoryManager
from tests.external.samples import QUICK, InMemory
from tests.timing import GIVE_UP, wait_until


class Preparing(InMemory):
    """Also keeps for what recall was prepared."""

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: object) -> None:
        self.told.append(("prepare", query, session_id))


def test_a_conversation_by_the_names_of_hermes(tmp_path: Path) -> None:
    """Start, prompt, recall, sync, boundaries, writes, delegation and end reach the provider with their arguments."""
    provider = Preparing()
    manager = MemoryManager(tmp_path, QUICK)
    assert manager.add_provider(provider)
    assert manager.initialize_all("s1", platform="cli")
    assert provider.started == {"session_id": "s1", "platform": "cli", "hermes_home": str(tmp_path)}
    assert manager.build_system_prompt() == "Notes are kept."
    assert [schema["name"] for schema in manager.get_all_tool_schemas()] == ["notes_find"]
    assert json.loads(manager.handle_tool_call("notes_find", {"text": "tea"}, task_id="7"))["success"] is True

    messages = [{"role": "user", "content": "I like tea."}]
    manager.on_turn_start(1, "I like tea.", model="m")
    assert manager.sync_all("I like tea.", "Noted.", session_id="s1")
    assert manager.drain(GIVE_UP)
    assert manager.prefetch_all("What do I like", session_id="s1") == "Noted."
    assert not [line for line in provider.told if line[0] == "prepare"]
    manager.queue_prefetch_all("tea", session_id="s1")
    wait_until(lambda: ("prepare", "tea", "s1") in provider.told)
    assert manager.on_memory_write("add", "user", "Likes tea.", {"session_id": "s1"})
    assert manager.on_delegation("look", "seen", child_session_id="c1")
    assert isinstance(manager.on_pre_compress(messages), str)
    assert manager.on_session_end(messages)
    assert manager.on_session_switch("s2", parent_session_id="s1", reset=True, reason="new_session")
    assert manager.drain(GIVE_UP)
    kinds = [line[0] for line in provider.told]
    assert ("switch", "s2", "s1", True, False, "new_session") in provider.told
    assert [kind for kind in kinds if kind in ("delegation", "switch")] == ["delegation", "switch"]
    assert manager.shutdown_all()
    assert provider.closed == 1
