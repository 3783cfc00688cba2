"""The `session_search` tool: browse, discover, scroll and read past conversations, with one schema.

The arguments decide the mode. The answer is always a JSON object, and never larger than the settings allow. A model
reads less of a conversation than a person: `definitions` returns the tool for it, whose answers still have to pass
`memoranda.safety.fence`.

A person and a program get roles and ids as they are recorded. An import decides both: a message may claim to be the
system's, and the id of a session may be the name of a file. So a model gets roles and ids that cannot be taken for live
text.
"""

import base64
import binascii
import copy
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memoranda.errors import StorageError
from memoranda.safety import scan
from memoranda.safety.fence import LABEL_CHARS
from memoranda.search import guidance
from memoranda.search.request import FILTERS, MAX_RESULTS, MAX_WINDOW, SearchRequest, read_request, refuse
from memoranda.search.settings import RecallSettings
from memoranda.support.shorten import json_size
from memoranda.support.tool import InvalidArgumentsError, JsonObject, StoredText, Tool, own_tool

if TYPE_CHECKING:
    from memoranda.search.answers import SearchAnswers
    from memoranda.search.searchable_store import SearchableStore
    from memoranda.search.summaries import Summarize

# A match in the title of a session has the role "session_title".
_ROLES = frozenset({"user", "assistant", "tool", "session_title"})
_ROLE_FIELDS = ("role", "matched_role")
_ID_FIELDS = ("session_id", "parent_session_id")
_REFERENCE = "ref:"
# No text begins with these bits in UTF-8, so what is encoded is never read as a text again.
_MASK = 0xA5


def show_to_model(answer: JsonObject) -> JsonObject:
    """The answer with `recorded_system` for the role of a system message, and references for suspicious ids."""
    return {name: _show_field(name, value) for name, value in answer.items()}


def resolve_ids(arguments: Any) -> Any:
    """The arguments of a call with the id of the session that a reference stands for."""
    if not isinstance(arguments, Mapping) or not isinstance(arguments.get("session_id"), str):
        return arguments
    return {**arguments, "session_id": resolve_reference(arguments["session_id"])}


def refer_to(session_id: str) -> str:
    """The id as a model may read it: the id itself, or a reference that says nothing and that the tool accepts."""
    return _encode(session_id) if _is_suspicious(session_id) else session_id


def resolve_reference(session_id: str) -> str:
    """The id that a reference stands for; every other text is an id already."""
    if not session_id.startswith(_REFERENCE):
        return session_id
    try:
        masked = base64.urlsafe_b64decode(session_id.removeprefix(_REFERENCE))
        return bytes(byte ^ _MASK for byte in masked).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeError):
        return session_id


def _show_field(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [show_to_model(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, str):
        return value
    if name in _ROLE_FIELDS and value not in _ROLES:
        return f"recorded_{value}"
    return refer_to(value) if name in _ID_FIELDS else value


@lru_cache(maxsize=1_000)
def _is_suspicious(session_id: str) -> bool:
    return bool(scan(session_id))


def _encode(session_id: str) -> str:
    masked = bytes(byte ^ _MASK for byte in session_id.encode("utf-8", "surrogatepass"))
    return _REFERENCE + base64.urlsafe_b64encode(masked).decode("ascii")


_log = logging.getLogger(__name__)

_QUOTES = StoredText("earlier conversations", "memoranda sessions show SESSION")
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": guidance.QUERY},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "description": guidance.LIMIT},
        "sort": {"type": "string", "enum": ["newest", "oldest"], "description": guidance.SORT},
        **{each.name: {"type": "string", "description": each.for_model} for each in FILTERS},
        "session_id": {"type": "string", "description": guidance.SESSION_ID},
        "around_message_id": {"type": "integer", "description": guidance.AROUND},
        "window": {"type": "integer", "minimum": 1, "maximum": MAX_WINDOW, "description": guidance.WINDOW},
        "cursor": {"type": "string", "description": guidance.CURSOR},
        "why": {"type": "boolean", "default": False, "description": guidance.WHY},
    },
}  # fmt: skip


class SessionSearchTool:
    """The tool for one scope of the store and, if there is one, its current session."""

    def __init__(
        self,
        open_db: "Callable[[], SearchableStore]",
        settings: RecallSettings | None = None,
        *,
        current_session_id: str | None = None,
        summarize: "Summarize | None" = None,
        current_project: Callable[[], str | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`current_project` returns the project that "this" means if the current session has none.

        `clock` is the time that "yesterday" and "two weeks ago" refer to.
        """
        self._open_db = open_db
        self._settings = settings or RecallSettings()
        self._current = current_session_id
        self._summarize = summarize
        self._current_project = current_project
        self._clock = clock
        self._answers: SearchAnswers | None = None

    def definitions(self) -> tuple[Tool, ...]:
        """The tool for a model."""
        for_model = copy.copy(self)
        for_model._settings = replace(self._settings, answer_chars=self._settings.answer_chars - LABEL_CHARS)
        for_model._answers = None

        def call(arguments: Mapping[str, Any]) -> JsonObject:
            return show_to_model(for_model.call(resolve_ids(arguments)))

        return (own_tool("session_search", guidance.TOOL_DESCRIPTION, PARAMETERS, call, _QUOTES),)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answers one call with the stored text as it is, for a person or a program; never raises."""
        try:
            return self.answer(self.read(arguments))
        except InvalidArgumentsError as error:
            return refuse("invalid", str(error))
        except StorageError as error:
            return refuse("unavailable", str(error))
        except Exception as error:
            # The last resort, because a tool never raises.
            _log.exception("session_search failed")
            return refuse("internal", f"Search failed unexpectedly ({type(error).__name__}: {error}).")

    def read(self, arguments: Mapping[str, Any]) -> SearchRequest:
        """The request that the arguments of a call make; raises InvalidArgumentsError."""
        return read_request(arguments, self._clock())

    def answer(self, request: SearchRequest) -> JsonObject:
        """Answers a request; raises InvalidArgumentsError or StorageError where `call` refuses."""
        db = self._open_db()
        if self._answers is None:
            # A session describes this tool long before a model calls it, and most never do.
            from memoranda.search.answers import SearchAnswers  # noqa: PLC0415

            self._answers = SearchAnswers(self._settings, self._current, self._summarize, self._current_project)
        answer = self._answers.answer(request.with_names(db.stored_name), db)
        return answer if json_size(answer) <= self._settings.answer_chars else refuse("too_large", guidance.TOO_LARGE)
