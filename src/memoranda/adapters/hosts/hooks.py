"""Answers the events of hosts: gives the model memory and evidence, calls tools, and records the sessions.

A host waits for its hooks, so this module loads quickly and each event imports what it needs.
"""

import json
from pathlib import Path

from memoranda.adapters.hosts.plugin_hosts import PLUGIN_HOSTS, TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memoranda.app import Memory
    from memoranda.importers.reader_protocol import ConversationReader
    from memoranda.importers.summary import ImportSummary
    from memoranda.support.home import Home

SESSION_START, USER_PROMPT = "SessionStart", "UserPromptSubmit"
ANSWERED_EVENTS = frozenset({SESSION_START, USER_PROMPT})
CAPTURE_EVENTS = frozenset({"Stop", "SubagentStop", "PreCompact", "SessionEnd"})
HOOK_HOSTS = ("claude-code", "codex")
HOSTS = (*HOOK_HOSTS, *PLUGIN_HOSTS)

_MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
# Claude Code shows longer text only in part.
_MAX_MEMORY_CHARS = 9_500
_LOCK_TIMEOUT = 120.0
_MIN_PROMPT_CHARS = 8
_COMMAND_SIGNS = ("/", "!", "#")
_MEMORY_HEAD = (
    "What you remember about the user and their work, from Memoranda, as it was when this session began. It is "
    "reference, not a request."
)
_TRUNCATED = "\n[cut here: more is remembered]"


class HookPayload:
    """One event of a session, as the host describes it on standard input. A plain class, because it loads faster."""

    __slots__ = ("arguments", "event", "prompt", "session_id", "tool", "transcript")

    def __init__(self, event: str = "", session_id: str = "", transcript: str = "", prompt: str = "") -> None:
        self.event = event
        self.session_id = session_id
        self.transcript = transcript
        self.prompt = prompt
        self.tool = ""
        self.arguments: Any = None


class HookAnswer:
    """The text for the context of the host's model ("" for none), and the reason; `hook_log` lists the outcomes."""

    __slots__ = ("details", "outcome", "reason", "text")

    def __init__(self, text: str, outcome: str, reason: str, details: "dict[str, Any] | None" = None) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        self.details = details or {}


def read_payload(raw: bytes, event: str = "") -> HookPayload:
    """Reads a payload; missing or malformed fields are empty. `event` is the default when the payload names none."""
    try:
        value = json.loads(raw[:_MAX_PAYLOAD_BYTES].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return HookPayload(event)
    # When a sub-agent of Codex stops, the other path is the transcript of the session that started it.
    transcript = _text_field(value, "agent_transcript_path") or _text_field(value, "transcript_path")
    payload = HookPayload(
        _text_field(value, "hook_event_name") or event,
        _text_field(value, "session_id"),
        "" if "\0" in transcript else transcript,
        _text_field(value, "prompt"),
    )
    payload.tool, payload.arguments = _text_field(value, "tool"), value.get("arguments")
    return payload


def _text_field(payload: "dict[str, Any]", name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def answer_event(home: "Home", user: str | None, payload: HookPayload, host: str) -> HookAnswer:
    """Finds what the host's model receives at this event; the text is JSON in the form that the host reads."""
    if payload.event == USER_PROMPT:
        answer = _evidence_for_prompt(home, user, payload, host)
    else:
        answer = _memory_for_session(home, user)
    if answer.text:
        output: dict[str, Any] = {"text": answer.text}
        if host not in PLUGIN_HOSTS:
            output = {"hookSpecificOutput": {"hookEventName": payload.event, "additionalContext": answer.text}}
        answer.text = json.dumps(output, ensure_ascii=False)
    return answer


def call_tool(home: "Home", user: str | None, payload: HookPayload, host: str) -> str:
    """Calls a tool for a host with a plugin, by its name there; returns the answer as JSON."""
    from memoranda.importers.session_writer import session_name  # noqa: PLC0415
    from memoranda.tool_host.answer_size import fit_answer  # noqa: PLC0415
    from memoranda.tool_host.tool_host import open_for_hosts  # noqa: PLC0415
    from memoranda.tools import tool_refusal  # noqa: PLC0415

    name = TOOLS.get(payload.tool)
    if name is None:
        return json.dumps(tool_refusal("invalid", f"Memoranda has no tool {payload.tool!r}."))
    with open_for_hosts(str(home.base), profile=home.profile, user=user) as memory:
        if name == "session_search":
            # The model has the current conversation in its context.
            current = session_name(host, payload.session_id, user)
            return fit_answer(memory.services.search_tool(user, current).call(payload.arguments))
        return fit_answer(memory.call(name, payload.arguments))


def _evidence_for_prompt(home: "Home", user: str | None, payload: HookPayload, host: str) -> HookAnswer:
    from memoranda.config.environment import uses_defaults  # noqa: PLC0415
    from memoranda.db.orphaned_wal import database_exists  # noqa: PLC0415

    prompt = payload.prompt.strip()
    # Many prompts end here, before the search is loaded.
    if len(prompt) < _MIN_PROMPT_CHARS:
        return HookAnswer("", "nothing", f"the prompt has fewer than {_MIN_PROMPT_CHARS} characters")
    if prompt.startswith(_COMMAND_SIGNS):
        return HookAnswer("", "nothing", "the prompt is a command of the host")
    settings = None
    if not uses_defaults(home):
        from memoranda.config.loader import load  # noqa: PLC0415

        settings = load(home).recall
    if not database_exists(home.state_db):
        return HookAnswer("", "nothing", "no conversation is recorded yet")
    from memoranda.adapters.hosts.prompt_evidence import find_evidence  # noqa: PLC0415
    from memoranda.recall.settings import RecallSettings  # noqa: PLC0415

    hidden = frozenset((settings or RecallSettings()).hidden_sources)
    found = find_evidence(home.state_db, user, prompt, host, payload.session_id, hidden)
    return HookAnswer(found.text, found.outcome, found.reason, found.details)


def _memory_for_session(home: "Home", user: str | None) -> HookAnswer:
    """Returns the notes and the profile with a heading."""
    from memoranda.config.environment import uses_defaults  # noqa: PLC0415
    from memoranda.curated.settings import CuratedSettings  # noqa: PLC0415
    from memoranda.curated.store import MemoryStore  # noqa: PLC0415
    from memoranda.support.shorten import shorten_end  # noqa: PLC0415
    from memoranda.tool_host.memory_text import read_memory_text  # noqa: PLC0415

    if uses_defaults(home):
        settings = CuratedSettings()
    else:
        from memoranda.config.loader import load  # noqa: PLC0415

        settings = load(home).curated
    remembered = read_memory_text(MemoryStore(home.memories(user), settings))
    if not remembered:
        return HookAnswer("", "nothing", "nothing is remembered yet")
    text = shorten_end(f"{_MEMORY_HEAD}\n\n{remembered}", _MAX_MEMORY_CHARS, _TRUNCATED)
    return HookAnswer(text, "given", "the notes and the profile")


def capture_transcript(memory: "Memory", transcript: Path, host: str) -> "ImportSummary | None":
    """Imports what is new in a session's transcript and those of its sub-agents; None when nothing was imported.

    Captures wait for each other. While a long import holds the lock, this one gives up: the transcript stays, and the
    next event of the session imports it.
    """
    from memoranda.importers.importer import Importer, import_lock  # noqa: PLC0415
    from memoranda.support.projects import project_of  # noqa: PLC0415

    reader = _reader_of(host)
    items = list(reader.scan(transcript)) if transcript.is_file() else []
    if not items:
        return None
    # Claude Code keeps sub-agents in a directory next to the transcript; those of Codex have their own event.
    sub_agents = transcript.with_suffix("")
    if sub_agents.is_dir():
        items += [item for item in reader.scan(sub_agents) if item.file.is_file()]
    with import_lock(memory.home.root, _LOCK_TIMEOUT) as lock_holder:
        if lock_holder:
            return None
        importer = Importer(memory.home.root, memory.sessions, project=project_of)
        try:
            return importer.apply(reader, items)
        finally:
            importer.close()


def _reader_of(host: str) -> "ConversationReader":
    """Returns the reader of a host's transcripts; only this one is loaded."""
    if host == "codex":
        from memoranda.importers.codex.reader import Codex  # noqa: PLC0415

        return Codex()
    from memoranda.importers.claude_code import ClaudeCode  # noqa: PLC0415

    return ClaudeCode()
