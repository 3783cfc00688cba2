"""Answers the events of hosts: gives the model memory and evidence, calls tools, and records the sessions.

The events have the names that Claude Code gave them; other hosts have some of the same events under other names. A host
waits for its hooks, so this module loads quickly and each event imports what it needs.
"""

import json
from functools import partial

from memoranda.integrations.hooks.events import EVENT_NAMES, PLUGIN_HOSTS, TOOLS, USER_PROMPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from memoranda.integrations.hooks.home_config import HomeConfig
    from memoranda.support.home import Home

# Hosts whose model gets context only with a prompt: the first prompt of a session gets the memory too.
_MEMORY_WITH_PROMPT = frozenset({"gemini-cli", "opencode"})

# Hosts that show a message of a hook to the person; the model of another one is asked to say it.
_HOSTS_THAT_SHOW = frozenset({"claude-code", "codex", "gemini-cli"})
_MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
# Claude Code shows longer text only in part.
_MAX_MEMORY_CHARS = 9_500
_MIN_PROMPT_CHARS = 8
_COMMAND_SIGNS = ("/", "!", "#")
_TRUNCATED = "\n[cut here: more is remembered]"


class HookPayload:
    """One event of a session, as the host describes it on standard input. A plain class, because it loads faster."""

    __slots__ = (
        "arguments",
        "directory",
        "event",
        "event_name",
        "problem",
        "prompt",
        "session_id",
        "source",
        "tool",
        "transcript",
    )

    def __init__(self, event_name: str = "", session_id: str = "", transcript: str = "", prompt: str = "") -> None:
        self.event = EVENT_NAMES.get(event_name, event_name)
        self.event_name = event_name
        """What the host calls the event."""
        self.session_id = session_id
        self.transcript = transcript
        self.prompt = prompt
        self.problem = ""
        """What is wrong with the whole payload, so that only its event is known."""
        self.source = ""
        """What began the session, or "compact" when its context was compacted."""
        self.directory = ""
        """Where the user works."""
        self.tool = ""
        self.arguments: Any = None


class HookAnswer:
    """The text for the context of the host's model ("" for none), and the reason; `recall_log` lists the outcomes."""

    __slots__ = ("details", "outcome", "reason", "text")

    def __init__(self, text: str, outcome: str, reason: str, details: "dict[str, Any] | None" = None) -> None:
        self.text = text
        self.outcome = outcome
        self.reason = reason
        self.details = details or {}


def read_payload(raw: bytes, event: str = "", host: str = "") -> HookPayload:
    """Reads a payload; missing or malformed fields are empty. `event` is the default when the payload names none.

    Cursor can run the hooks of Claude Code too. It has its own, so such a payload has no event.
    """
    try:
        value = json.loads(raw[:_MAX_PAYLOAD_BYTES].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        payload = HookPayload(event)
        payload.problem = "is not a JSON object" if raw.strip() else "is empty"
        return payload
    if "cursor_version" in value and host not in ("", "cursor"):
        return HookPayload()
    # When a sub-agent of Codex stops, the other path is the transcript of the session that started it.
    transcript = _text_field(value, "agent_transcript_path") or _text_field(value, "transcript_path")
    payload = HookPayload(
        _text_field(value, "hook_event_name") or event,
        _text_field(value, "session_id") or _text_field(value, "conversation_id"),
        "" if "\0" in transcript else transcript,
        _typed_words(_text_field(value, "prompt")),
    )
    payload.source = _text_field(value, "source")
    roots = value.get("workspace_roots")
    payload.directory = _text_field(value, "cwd") or (str(roots[0]) if isinstance(roots, list) and roots else "")
    payload.tool, payload.arguments = _text_field(value, "tool"), value.get("arguments")
    return payload


def _text_field(payload: "dict[str, Any]", name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _typed_words(prompt: str) -> str:
    """Removes what Gemini CLI delivers with a prompt: the context of other hooks before it, and files after it."""
    if prompt.startswith("<hook_context>"):
        prompt = prompt.partition("</hook_context>")[2].lstrip()
    return prompt.partition("\n--- Content from referenced files ---\n")[0]


def answer_event(config: "HomeConfig", user: str | None, payload: HookPayload, host: str) -> HookAnswer:
    """Finds what the host's model receives at this event; the text is JSON in the form that the host reads."""
    if payload.event != USER_PROMPT:
        answer = _memory_for_session(config, user, payload.directory)
        if payload.problem and not answer.text:
            answer = _unreadable(payload)
    else:
        answer = _evidence_for_prompt(config, user, payload, host)
        if _needs_memory(config.home, payload, host):
            answer = _add_memory(_memory_for_session(config, user, payload.directory), answer)
    notice = _waiting_notice(config.home, user, payload, answer)
    if notice and host not in _HOSTS_THAT_SHOW:
        answer.text = f"{answer.text}\n\n{notice} Tell the user.".strip()
    output: dict[str, Any] = {}
    if answer.text:
        output = {"text": answer.text}
        if host == "cursor":
            output = {"continue": True, "additional_context": answer.text}
        elif host not in PLUGIN_HOSTS:
            output = {"hookSpecificOutput": {"hookEventName": payload.event_name, "additionalContext": answer.text}}
    if notice and host in _HOSTS_THAT_SHOW:
        output["systemMessage"] = f"Memoranda: {notice}"
    answer.text = json.dumps(output, ensure_ascii=False) if output else ""
    return answer


def _waiting_notice(home: "Home", user: str | None, payload: HookPayload, answer: HookAnswer) -> str:
    """Says once in a session that changes of memory wait for a person; "" if none does.

    Those of a server are not looked for: that would be one more connection for each prompt.
    """
    from memoranda.support.home import PENDING  # noqa: PLC0415

    waiting = sorted(path.stem for path in (home.memories(user) / PENDING).glob("*.json"))
    if not waiting or not payload.session_id:
        return ""
    from memoranda.integrations.hooks.log import announced_proposals  # noqa: PLC0415

    if announced_proposals(home.root, payload.session_id).issuperset(waiting):
        return ""
    answer.details = {**answer.details, "waiting": waiting}
    changes = "1 change of memory waits" if len(waiting) == 1 else f"{len(waiting)} changes of memory wait"
    return f"{changes} for a decision: 'memoranda memory pending' shows what an agent wanted to remember."


def call_tool(home: "Home", user: str | None, payload: HookPayload, host: str) -> str:
    """Calls a tool for a host with a plugin, by its name there; returns the answer as JSON."""
    from memoranda.importers.session_writer import session_name  # noqa: PLC0415
    from memoranda.integrations.hooks.user_words import heard_words  # noqa: PLC0415
    from memoranda.integrations.tool_host import ToolHost, fit_answer, open_for_hosts  # noqa: PLC0415
    from memoranda.safety.fence import screen_tools  # noqa: PLC0415
    from memoranda.support.tool import tool_refusal  # noqa: PLC0415

    name = TOOLS.get(payload.tool)
    if name is None:
        return json.dumps(tool_refusal("invalid", f"Memoranda has no tool {payload.tool!r}."))
    with open_for_hosts(str(home.base), profile=home.profile, user=user) as memory:
        if name == "session_search":
            # The model has the current conversation in its context.
            search = memory.services.search_tool(user, session_name(host, payload.session_id, user))
            (tool,) = screen_tools(search.definitions())
            return fit_answer(tool.call(payload.arguments))
        tool_host = ToolHost(memory, source=host, heard=partial(heard_words, memory))
        try:
            return fit_answer(
                tool_host.call(name, payload.arguments) or tool_refusal("disabled", "Memory is switched off.")
            )
        finally:
            tool_host.close()


def _evidence_for_prompt(config: "HomeConfig", user: str | None, payload: HookPayload, host: str) -> HookAnswer:
    from memoranda.storage.orphaned_wal import record_exists  # noqa: PLC0415

    if payload.problem:
        return _unreadable(payload)
    prompt = payload.prompt.strip()
    if recent := _recent_for_prompt(config, user, payload, host):
        return HookAnswer(recent, "given", "the prompt asks to continue: the last conversations of this project")
    # Many prompts end here, before the search is loaded.
    if len(prompt) < _MIN_PROMPT_CHARS:
        return HookAnswer("", "nothing", f"the prompt has fewer than {_MIN_PROMPT_CHARS} characters")
    if prompt.startswith(_COMMAND_SIGNS):
        return HookAnswer("", "nothing", "the prompt is a command of the host")
    loaded = config.load()
    location: Path | str = config.home.state_db
    if loaded is not None and loaded.store.url:
        from memoranda.home.config import record_location  # noqa: PLC0415

        location = record_location(config.home, loaded)
    if not record_exists(location):
        return HookAnswer("", "nothing", "no conversation is recorded yet")
    from memoranda.integrations.hooks.prompt_evidence import find_evidence  # noqa: PLC0415
    from memoranda.search.settings import RecallSettings  # noqa: PLC0415

    hidden = frozenset((loaded.recall if loaded else RecallSettings()).hidden_sources)
    find = partial(find_evidence, location, user, prompt, host, payload.session_id, hidden)
    find = partial(find, index_directory=config.home.root)
    if loaded is not None and loaded.recall.semantic:
        from memoranda.api.search_extras import open_search_extras  # noqa: PLC0415

        with open_search_extras(config.home, loaded) as semantic:
            found = find([semantic.rescorers])
    else:
        found = find()
    return HookAnswer(found.text, found.outcome, found.reason, found.details)


def _unreadable(payload: HookPayload) -> HookAnswer:
    return HookAnswer("", "error", f"standard input {payload.problem}")


def _recent_for_prompt(config: "HomeConfig", user: str | None, payload: HookPayload, host: str) -> str:
    """The last conversations of the project, for a prompt that asks to continue; "" for every other."""
    from memoranda.search.continue_prompts import asks_to_continue  # noqa: PLC0415

    if not asks_to_continue(payload.prompt):
        return ""
    from memoranda.api.recent import recent_for_prompt  # noqa: PLC0415
    from memoranda.importers.session_writer import session_name  # noqa: PLC0415
    from memoranda.integrations.tool_host import open_for_hosts  # noqa: PLC0415
    from memoranda.support.projects import project_of  # noqa: PLC0415

    with open_for_hosts(str(config.home.base), profile=config.home.profile, user=user) as memory:
        if not memory.services.has_record:
            return ""
        name = session_name(host, payload.session_id, user) if payload.session_id else ""
        row = (memory.sessions.get_session(name) if name else None) or {}
        return recent_for_prompt(
            memory.services,
            user,
            payload.prompt,
            project_of(payload.directory) if payload.directory else None,
            is_own=lambda session_id: bool(name) and session_id.startswith(name),
            begins=(row.get("message_count") or 0) <= 1,
        )


def _needs_memory(home: "Home", payload: HookPayload, host: str) -> bool:
    """Whether the prompt brings the memory: always the first of some hosts; of others, if the start brought none."""
    from memoranda.integrations.hooks.log import missed_memory, was_given_memory  # noqa: PLC0415

    if host in _MEMORY_WITH_PROMPT:
        return payload.source == "compact" or not was_given_memory(home.root, payload.session_id)
    return missed_memory(home.root, payload.session_id)


def _add_memory(memory: HookAnswer, evidence: HookAnswer) -> HookAnswer:
    if not memory.text:
        return evidence
    text = f"{memory.text}\n\n{evidence.text}" if evidence.text else memory.text
    reason = f"{memory.reason}; {evidence.reason}"
    return HookAnswer(text, memory.outcome, reason, {**evidence.details, "memory": True})


def _memory_for_session(config: "HomeConfig", user: str | None, directory: str) -> HookAnswer:
    """Returns the notes, the profile and the memory of the project with a heading."""
    from memoranda.integrations.memory_text import read_memory_text  # noqa: PLC0415
    from memoranda.memory.curated.settings import CuratedSettings  # noqa: PLC0415
    from memoranda.memory.curated.store import MemoryStore  # noqa: PLC0415
    from memoranda.safety.fence import MEMORY_HEAD  # noqa: PLC0415
    from memoranda.support.shorten import shorten_end  # noqa: PLC0415

    loaded = config.load()
    settings = loaded.curated if loaded else CuratedSettings()
    if loaded is not None and loaded.store.url:
        from contextlib import closing  # noqa: PLC0415

        from memoranda.home.memory_store import CuratedMemories  # noqa: PLC0415

        with closing(CuratedMemories(config.home, loaded)) as memories:
            remembered = read_memory_text(memories.open(user), directory)
    else:
        remembered = read_memory_text(MemoryStore(config.home.memories(user), settings), directory)
    if not remembered:
        return HookAnswer("", "nothing", "nothing is remembered yet")
    text = shorten_end(f"{MEMORY_HEAD}\n\n{remembered}", _MAX_MEMORY_CHARS, _TRUNCATED)
    return HookAnswer(text, "given", "the notes and the profile")
