"""The tools and the memory of one home, for a protocol server to offer to other programs.

Answers are shortened to a size that other programs accept. Claude Code warns about a result of more than 10,000 tokens
and refuses one of more than 25,000. Codex removes the middle of a result of more than 10,000 tokens, with some models
of more than 10 kB. So an answer that is too long loses the ends of its longest fields, and says so.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.errors import MemorandaError
from memoranda.home import config
from memoranda.integrations.memory_text import MemoryText
from memoranda.memory.curated.settings import PROJECT, TARGETS
from memoranda.safety.fence import screen_tools
from memoranda.support.tool import JsonObject, Tool, own_tool

_log = logging.getLogger(__name__)

_REMEMBER = (
    "Save one fact that the user asked to be remembered, in a sentence that will still make sense in a year. It is on "
    "disk when this answers, and known to every agent of the user from their next session on. Correct or remove what "
    "is remembered with `memory`: if `similar` in the answer has the older value of the same thing, replace it."
)
_REMEMBER_TEXT = "The fact, in a short sentence of its own: 'The staging database is called heron.'"
_REMEMBER_TARGET = "'memory' for notes about work and surroundings, 'user' for who the user is and what they prefer"

MAX_BYTES = 40_000
# Search gets a smaller limit, because it knows better what to omit and offers a cursor for the rest.
MAX_SEARCH_CHARS = 9_500
_NOTE = "Parts of this answer were left out because it was too long; ask for less at once."
_START_TIMEOUT = 5.0
# Some programs wait no longer than 25 seconds for a tool.
_SUMMARY_SECONDS = 20.0
_REMEMBER_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": _REMEMBER_TEXT},
        "target": {"type": "string", "enum": list(TARGETS), "description": _REMEMBER_TARGET},
    },
    "required": ["text"],
}


def _remember_parameters(memory: Tool) -> JsonObject:
    """The arguments of `remember`; it offers the memory of a project where the `memory` tool does."""
    target = memory.parameters["properties"]["target"]
    if PROJECT not in target["enum"]:
        return _REMEMBER_PARAMETERS
    about = f"{_REMEMBER_TARGET}, 'project' for what holds only in this project"
    properties = {**_REMEMBER_PARAMETERS["properties"], "target": {**target, "description": about}}
    return {**_REMEMBER_PARAMETERS, "properties": properties}


class ToolHost:
    """Lists and calls the tools of one home. It is independent of protocols: a server translates.

    All calls share one session, which may start in the background, because a provider may be slow. `source` is
    recorded with that session; `current_project` names the project that a search means by "this"; `heard` is asked for
    what the user of the other program is known to have said, when that saves something.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        source: str,
        current_project: Callable[[], str | None] = lambda: None,
        heard: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._memory = memory
        self._source = source
        self._current_project = current_project
        self._heard = heard
        self._session_lock = threading.Lock()
        self._session: Session | None = None

    def start_in_background(self) -> None:
        """Starts the session in a thread if it has a provider, so that the server can answer other requests meanwhile.

        Without one it starts quickly, when it is first needed. Two threads would only load and compute the same twice.
        """
        if not self.may_gain_tools:
            return
        threading.Thread(target=self._try_to_start, name="memoranda-tool-host", daemon=True).start()

    def wait_for_start(self) -> None:
        """Waits a few seconds for a session that is just starting, so that closing the home closes it too."""
        if self._session_lock.acquire(timeout=_START_TIMEOUT):
            self._session_lock.release()

    def close(self) -> None:
        """Ends the session behind the tools, if it was started; a later call starts another one."""
        with self._session_lock:
            session, self._session = self._session, None
        if session is not None:
            session.end()

    @property
    def may_gain_tools(self) -> bool:
        """Whether tools may appear later: a provider is configured, and it may still be starting."""
        return bool(self._memory.config.providers)

    def memory_text(self) -> MemoryText | None:
        """Reads the curated memory now; None when its files are switched off."""
        settings, project = self._memory.config.curated, self._current_project()
        in_use = settings.targets() or (project and settings.project_enabled)
        return MemoryText(self._memory, project) if in_use else None

    def tools(self) -> tuple[Tool, ...]:
        """Returns the memory and search tools, `remember`, and the tools of the active provider."""
        session = self._started_session()
        built_in = tuple(tool for tool in session.tools if tool.facts.for_hosts)
        remember = tuple(
            # The `memory` tool screens the answer: it knows what a person has allowed.
            own_tool("remember", _REMEMBER, _remember_parameters(tool), self._remember, screened=True)
            for tool in built_in
            if tool.name == "memory"
        )
        return screen_tools((*built_in, *remember, *session.external.tools()))

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject | None:
        """Calls a tool as a model would; None when no tool has that name."""
        tool = next((tool for tool in self.tools() if tool.name == name), None)
        if tool is None:
            return None
        # The other program does not say where its turns begin, so every call counts as a separate turn.
        self._started_session().begin_turn()
        return tool.call(self._with_project_name(arguments) if name == "session_search" else arguments)

    def _with_project_name(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replaces the project "this" with its name, because the session behind the tools has no directory."""
        if str(arguments.get("project")).strip().lower() == "this" and (project := self._current_project()):
            return {**arguments, "project": project}
        return arguments

    def _remember(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Adds a fact through the `memory` tool, so that it is scanned and approved like the model's other writes."""
        change = {"target": arguments.get("target"), "action": "add", "content": arguments.get("text")}
        answer = self._started_session().call("memory", change)
        if answer.get("reason") == "invalid" and not isinstance(arguments.get("text"), str):
            return answer | {"error": "text must be the fact to remember, as a string. Nothing was written."}
        return answer

    def _started_session(self) -> Session:
        with self._session_lock:
            if self._session is None:
                self._session = self._memory.session(source=self._source)
                caller = f"a program over {self._source}"
                self._session.distrust_caller(caller, self._heard, self._current_project())
            return self._session

    def _try_to_start(self) -> None:
        try:
            self._started_session()
        except (MemorandaError, OSError) as error:
            # The next call that needs the session tries again and reports the error.
            _log.warning("The session behind the tools could not be started: %s", error)


def open_for_hosts(home: str | None = None, *, profile: str | None = None, user: str | None = None) -> Memory:
    """Opens a home like `memoranda.open`, but limits search answers to the size and time that other programs accept."""
    located = config.locate_home(home, profile)
    located.refuse_if_foreign()
    settings = config.load(located)
    recall = replace(
        settings.recall,
        answer_chars=min(settings.recall.answer_chars, MAX_SEARCH_CHARS),
        summary_deadline=min(settings.recall.summary_deadline, _SUMMARY_SECONDS),
    )
    return Memory(located, replace(settings, recall=recall), user)


def fit_answer(answer: JsonObject, max_bytes: int = MAX_BYTES) -> str:
    """Returns an answer as compact JSON of at most `max_bytes`."""
    text = _dump(answer)
    if _byte_count(text) <= max_bytes:
        return text
    shorter: JsonObject = dict(answer) | {"truncated": True, "note": _NOTE}
    while _byte_count(_dump(shorter)) > max_bytes:
        longest = max(shorter, key=lambda field: _byte_count(_dump(shorter[field])))
        half = _first_half(shorter[longest])
        if half is None:
            return _dump({"success": bool(answer.get("success")), "truncated": True, "note": _NOTE})
        shorter[longest] = half
    return _dump(shorter)


def _first_half(value: Any) -> Any:
    """Returns the first half of a value; None when it cannot be shortened further."""
    if isinstance(value, str | list) and value:
        return value[: len(value) // 2]
    if isinstance(value, dict) and value:
        return dict(list(value.items())[: len(value) // 2])
    return None


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _byte_count(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
