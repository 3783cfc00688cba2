"""What a home offers to a host: its tools, with hints about what they do, and what is remembered."""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from memoranda import config
from memoranda.adapters.mcp import guidance
from memoranda.adapters.mcp.remembered import Remembered
from memoranda.adapters.mcp.sizes import MOST_SEARCH_CHARS
from memoranda.app import Memory, Session
from memoranda.curated.settings import TARGETS
from memoranda.errors import MemorandaError
from memoranda.tools import JsonObject, Tool

_log = logging.getLogger(__name__)

SOURCE = "mcp"
_LONGEST_BEGINNING = 5.0
_OWN = ("memory", "session_search")
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": guidance.REMEMBER_TEXT},
        "target": {"type": "string", "enum": list(TARGETS), "description": guidance.REMEMBER_TARGET},
    },
    "required": ["text"],
}
# Hosts decide by these what to ask their user about. Of a provider's tools nothing is known, so the worst is said.
_HINTS: dict[str, JsonObject] = {
    "memory": {"title": "Change what is remembered", "readOnlyHint": False, "destructiveHint": True,
               "idempotentHint": False, "openWorldHint": False},
    "session_search": {"title": "Search past conversations", "readOnlyHint": True, "destructiveHint": False,
                       "idempotentHint": True, "openWorldHint": False},
    "remember": {"title": "Remember a fact", "readOnlyHint": False, "destructiveHint": False,
                 "idempotentHint": True, "openWorldHint": False},
}  # fmt: skip
_UNKNOWN: JsonObject = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


class Offers:
    """What one home offers. The session behind its tools begins in the background, because a provider may be slow.

    `here` is the project that a search means by "this".
    """

    def __init__(self, memory: Memory, here: Callable[[], str | None] = lambda: None) -> None:
        self._memory = memory
        self._here = here
        self._beginning = threading.Lock()
        self._session: Session | None = None

    def begin(self) -> None:
        """Begin the session beside whatever the host asks for first."""
        threading.Thread(target=self._try_to_begin, name="memoranda-mcp-session", daemon=True).start()

    def settle(self) -> None:
        """Let a session that is just beginning begin, so that it can be closed."""
        if self._beginning.acquire(timeout=_LONGEST_BEGINNING):
            self._beginning.release()

    @property
    def may_grow(self) -> bool:
        """Whether more tools may come: there is a provider, which may still be starting."""
        return bool(self._memory.config.provider)

    def remembered(self) -> Remembered | None:
        """What is remembered at this moment; None when all of memory is switched off."""
        return Remembered(self._memory) if self._memory.curated.settings.targets() else None

    def tools(self) -> tuple[Tool, ...]:
        """The tools of memory and search, `remember`, and those of the provider that is active."""
        session = self._begun()
        own = tuple(tool for tool in session.tools if tool.name in _OWN)
        writes = any(tool.name == "memory" for tool in own)
        remember = Tool("remember", guidance.REMEMBER, _PARAMETERS, self._remember)
        return (*own, *((remember,) if writes else ()), *session.external.tools())

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject | None:
        """Call a tool as a model would; None when there is none of that name."""
        tool = next((each for each in self.tools() if each.name == name), None)
        if tool is None:
            return None
        # Nobody tells us where a turn of the host begins, so that failures count for one call only.
        self._begun().begin_turn()
        return tool.call(self._in_place(arguments) if name == "session_search" else arguments)

    def _in_place(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with the present project by its name: the session behind the tools has none of its own."""
        if str(arguments.get("project")).strip().lower() == "this" and (here := self._here()):
            return {**arguments, "project": here}
        return arguments

    def _remember(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Save a fact by the model's word: approval by a person, where it is wanted, is asked for as ever."""
        change = {"target": arguments.get("target"), "action": "add", "content": arguments.get("text")}
        answer = self._begun().call("memory", change)
        if answer.get("reason") == "invalid" and not isinstance(arguments.get("text"), str):
            return answer | {"error": "text must be the fact to remember, as a string. Nothing was written."}
        return answer

    def _begun(self) -> Session:
        with self._beginning:
            if self._session is None:
                self._session = self._memory.session(source=SOURCE)
            return self._session

    def _try_to_begin(self) -> None:
        try:
            self._begun()
        except (MemorandaError, OSError) as error:
            # Whoever needs the session tries again, and is told.
            _log.warning("The session behind the tools could not be begun: %s", error)


def described(tool: Tool) -> JsonObject:
    """A tool as MCP lists it."""
    hints = _HINTS.get(tool.name, _UNKNOWN)
    return {
        "name": tool.name,
        "title": hints.get("title", tool.name),
        "description": tool.description,
        "inputSchema": {"properties": {}} | tool.parameters | {"type": "object"},
        "annotations": hints,
    }


def open_for_hosts(home: str | None = None, *, profile: str | None = None, user: str | None = None) -> Memory:
    """A home as `memoranda.open` opens it, but for search, which keeps within what hosts accept."""
    place = config.locate_home(home, profile)
    place.refuse_if_foreign()
    settings = config.load(place)
    most = min(settings.recall.answer_chars, MOST_SEARCH_CHARS)
    return Memory(place, replace(settings, recall=replace(settings.recall, answer_chars=most)), user)
