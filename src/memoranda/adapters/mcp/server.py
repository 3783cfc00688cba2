"""The server itself: a message in, its answer out, whatever the message is and whichever era it belongs to."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.adapters.mcp import guidance
from memoranda.adapters.mcp.eras import SELF_CONTAINED, SERVER_INFO, agreed, completed, version_of
from memoranda.adapters.mcp.offers import Offers, described
from memoranda.adapters.mcp.remembered import CHANGES_URI, URI, Remembered
from memoranda.adapters.mcp.sizes import as_text
from memoranda.adapters.mcp.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    ProtocolError,
    Request,
    failure,
    read_request,
    success,
)
from memoranda.tools import JsonObject

_log = logging.getLogger(__name__)

_MOST_IN_A_BATCH = 50
_MIME = "text/plain"
_PROMPT = "memory"


class Server:
    """Answers the messages of one host (`lasting`), or of any number of them that come and go.

    With one host, what is remembered is frozen when it says hello; others get it as it is when they ask. `bare` leaves
    it out of the instructions, for hosts that have it from elsewhere.
    """

    def __init__(self, offers: Offers, *, lasting: bool = True, bare: bool = False) -> None:
        self._offers = offers
        self._lasting = lasting
        self._bare = bare
        self._frozen: Remembered | None = None
        self._greeted = False
        self._listed: list[str] | None = None
        self._methods: dict[str, Callable[[Request], JsonObject]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda request: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda request: {"resourceTemplates": []},
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }

    def answer(self, message: Any) -> Any:
        """The answer to a message or to a batch of them; None when nobody waits for one."""
        if not isinstance(message, list):
            return self._answer_one(message)
        if not 0 < len(message) <= _MOST_IN_A_BATCH:
            reason = f"A batch must hold 1 to {_MOST_IN_A_BATCH} messages."
            return failure(None, ProtocolError(INVALID_REQUEST, reason))
        return [answer for each in message if (answer := self._answer_one(each)) is not None] or None

    def news(self) -> list[JsonObject]:
        """What a host should hear of unasked: tools that came or went, such as those of a provider that was late."""
        if not self._greeted or self._listed is None or self._names() == self._listed:
            return []
        self._listed = None
        return [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]

    @property
    def may_have_news(self) -> bool:
        return self._offers.may_grow

    def _answer_one(self, message: Any) -> JsonObject | None:
        request: Request | None = None
        try:
            request = read_request(message)
            if request is None or not request.wants_answer:
                return None
            version_of(request)
            return success(request.id, completed(self._result(request), request))
        except ProtocolError as error:
            return failure(request.id if request else error.answers, error)
        except Exception as error:
            # The last line of defence for a promise: a request is answered, and the connection goes on.
            _log.exception("an MCP request failed")
            text = f"{type(error).__name__}: {error}"[:500]
            return failure(request.id if request else None, ProtocolError(INTERNAL_ERROR, text))

    def _result(self, request: Request) -> JsonObject:
        method = self._methods.get(request.method)
        if method is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {request.method[:100]!r} here.")
        return method(request)

    def _initialize(self, request: Request) -> JsonObject:
        self._greeted = True
        self._frozen = None
        return {
            "protocolVersion": agreed(request.params.get("protocolVersion")),
            "capabilities": self._capabilities(tells=self._lasting),
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions(),
        }

    def _discover(self, request: Request) -> JsonObject:
        return {
            "supportedVersions": list(SELF_CONTAINED),
            "capabilities": self._capabilities(tells=False),
            "instructions": self._instructions(),
        }

    def _capabilities(self, *, tells: bool) -> JsonObject:
        return {"tools": {"listChanged": True} if tells else {}, "resources": {}, "prompts": {}}

    def _instructions(self) -> str:
        remembered = self._remembered()
        return guidance.INSTRUCTIONS if remembered is None else remembered.instructions(bare=self._bare)

    def _list_tools(self, request: Request) -> JsonObject:
        tools = self._offers.tools()
        self._listed = [tool.name for tool in tools]
        return {"tools": [described(tool) for tool in tools]}

    def _names(self) -> list[str]:
        return [tool.name for tool in self._offers.tools()]

    def _call_tool(self, request: Request) -> JsonObject:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise ProtocolError(INVALID_PARAMS, "name must be text, and arguments an object.")
        answer = self._offers.call(name, arguments)
        if answer is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no tool {name[:100]!r} here.")
        # Once, as text: some hosts hand both forms of a result to the model, which then pays twice.
        text = {"type": "text", "text": as_text(answer)}
        return {"content": [text], "isError": not answer.get("success", True)}

    def _list_resources(self, request: Request) -> JsonObject:
        if self._remembered() is None:
            return {"resources": []}
        about: JsonObject = {
            "uri": URI, "name": "memory", "title": guidance.TITLE, "description": guidance.RESOURCE, "mimeType": _MIME,
            "annotations": {"audience": ["assistant"], "priority": 1.0},
        }  # fmt: skip
        return {"resources": [about]}

    def _read_resource(self, request: Request) -> JsonObject:
        remembered = self._remembered()
        if request.params.get("uri") != URI or remembered is None:
            code = INVALID_PARAMS if version_of(request) else RESOURCE_NOT_FOUND
            uri = str(request.params.get("uri"))[:200]
            raise ProtocolError(code, f"There is no resource {uri!r}.", {"uri": uri})
        parts = [(URI, remembered.text or guidance.NOTHING), (CHANGES_URI, remembered.changes())]
        return {"contents": [{"uri": uri, "mimeType": _MIME, "text": text} for uri, text in parts if text]}

    def _list_prompts(self, request: Request) -> JsonObject:
        about = {"name": _PROMPT, "title": guidance.TITLE, "description": guidance.PROMPT, "arguments": []}
        return {"prompts": [] if self._remembered() is None else [about]}

    def _get_prompt(self, request: Request) -> JsonObject:
        remembered = self._remembered()
        if request.params.get("name") != _PROMPT or remembered is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no prompt {str(request.params.get('name'))[:100]!r}.")
        parts = [guidance.PROMPT_HEAD, remembered.text or guidance.NOTHING, remembered.changes()]
        text = "\n\n".join(part for part in parts if part)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": guidance.PROMPT, "messages": [message]}

    def _remembered(self) -> Remembered | None:
        """What is remembered: since the host said hello, or for this request."""
        if self._frozen is not None:
            return self._frozen
        taken = self._offers.remembered()
        if self._lasting:
            self._frozen = taken
        return taken
