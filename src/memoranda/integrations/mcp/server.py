"""The MCP server itself: takes a message of any protocol version and returns the answer."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.integrations.mcp import guidance
from memoranda.integrations.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SELF_CONTAINED,
    SERVER_INFO,
    ProtocolError,
    RpcRequest,
    complete_result,
    failure,
    negotiate_version,
    read_request,
    request_version,
    success,
)
from memoranda.integrations.memory_text import MemoryText
from memoranda.integrations.tool_host import ToolHost, fit_answer
from memoranda.support.tool import JsonObject, Tool, ToolFacts, facts_of

_log = logging.getLogger(__name__)

MEMORY_URI = "memoranda://memory"
CHANGES_URI = f"{MEMORY_URI}/changes"
_MAX_BATCH = 50
_MAX_CHARS_IN_INSTRUCTIONS = 8_000
_MIME = "text/plain"
_PROMPT = "memory"


class McpServer:
    """Answers the messages of one client (`one_client`), or of any number of clients that come and go.

    With one client the memory text is frozen when it sends `initialize`; other clients get the live text with each
    request. `bare` omits the memory text from the instructions, for hosts whose hooks give it to the model.
    `read_only` offers only the tools that change nothing.
    """

    def __init__(
        self, tool_host: ToolHost, *, one_client: bool = True, bare: bool = False, read_only: bool = False
    ) -> None:
        self._tool_host = tool_host
        self._one_client = one_client
        self._bare = bare
        self._read_only = read_only
        self._frozen: MemoryText | None = None
        self._initialized = False
        self._listed_names: list[str] | None = None
        self._methods: dict[str, Callable[[RpcRequest], JsonObject]] = {
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
        """Returns the answer to a message or a batch of messages; None when only notifications were sent."""
        if not isinstance(message, list):
            return self._answer_one(message)
        if not 0 < len(message) <= _MAX_BATCH:
            reason = f"A batch must have 1 to {_MAX_BATCH} messages."
            return failure(None, ProtocolError(INVALID_REQUEST, reason))
        return [answer for item in message if (answer := self._answer_one(item)) is not None] or None

    def notifications(self) -> list[JsonObject]:
        """Returns the notifications to send now: the list of tools changed, for example when a provider started."""
        if not self._initialized or self._listed_names is None or self._tool_names() == self._listed_names:
            return []
        self._listed_names = None
        return [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]

    @property
    def may_notify(self) -> bool:
        return self._tool_host.may_gain_tools

    def resume(self) -> None:
        """Continues a connection whose `initialize` another server object answered, for example before a restart."""
        self._initialized = True

    def _answer_one(self, message: Any) -> JsonObject | None:
        request: RpcRequest | None = None
        try:
            request = read_request(message)
            if request is None or not request.wants_answer:
                return None
            request_version(request)
            return success(request.id, complete_result(self._dispatch(request), request))
        except ProtocolError as error:
            return failure(request.id if request else error.request_id, error)
        except Exception as error:
            # Every request gets an answer, and the connection stays open, whatever fails while answering it.
            _log.exception("an MCP request failed")
            text = f"{type(error).__name__}: {error}"[:500]
            return failure(request.id if request else None, ProtocolError(INTERNAL_ERROR, text))

    def _dispatch(self, request: RpcRequest) -> JsonObject:
        method = self._methods.get(request.method)
        if method is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {request.method[:100]!r} here.")
        return method(request)

    def _initialize(self, request: RpcRequest) -> JsonObject:
        self._initialized = True
        self._frozen = None
        return {
            "protocolVersion": negotiate_version(request.params.get("protocolVersion")),
            "capabilities": self._capabilities(notifies=self._one_client),
            "serverInfo": SERVER_INFO,
            "instructions": self._instructions(),
        }

    def _discover(self, request: RpcRequest) -> JsonObject:
        return {
            "supportedVersions": list(SELF_CONTAINED),
            "capabilities": self._capabilities(notifies=False),
            "instructions": self._instructions(),
        }

    def _capabilities(self, *, notifies: bool) -> JsonObject:
        return {"tools": {"listChanged": True} if notifies else {}, "resources": {}, "prompts": {}}

    def _instructions(self) -> str:
        """Returns how to use the server and, unless `bare`, the memory text, for the host's system prompt."""
        memory = self._memory_text()
        if memory is None or self._bare or not memory.text:
            return guidance.INSTRUCTIONS
        if len(memory.text) > _MAX_CHARS_IN_INSTRUCTIONS:
            return f"{guidance.INSTRUCTIONS} {guidance.TOO_LONG.format(uri=MEMORY_URI)}"
        return f"{guidance.INSTRUCTIONS}\n\n{guidance.REMEMBERED}\n\n{memory.text}"

    def _list_tools(self, request: RpcRequest) -> JsonObject:
        tools = self._offered_tools()
        self._listed_names = [tool.name for tool in tools]
        return {"tools": [describe_tool(tool) for tool in tools]}

    def _tool_names(self) -> list[str]:
        return [tool.name for tool in self._offered_tools()]

    def _offered_tools(self) -> list[Tool]:
        return [tool for tool in self._tool_host.tools() if self._may_call(tool.name)]

    def _may_call(self, name: str) -> bool:
        return not self._read_only or facts_of(name).read_only

    def _call_tool(self, request: RpcRequest) -> JsonObject:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise ProtocolError(INVALID_PARAMS, "name must be text, and arguments an object.")
        if not self._may_call(name):
            raise ProtocolError(INVALID_PARAMS, f"There is no tool {name[:100]!r} here for a key that may only read.")
        answer = self._tool_host.call(name, arguments)
        if answer is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no tool {name[:100]!r} here.")
        # Only as text, without structuredContent: some hosts give both to the model, which doubles the tokens.
        text = {"type": "text", "text": fit_answer(answer)}
        return {"content": [text], "isError": not (answer.get("success", True) or "staged" in answer)}

    def _list_resources(self, request: RpcRequest) -> JsonObject:
        if self._memory_text() is None:
            return {"resources": []}
        resource: JsonObject = {
            "uri": MEMORY_URI,
            "name": "memory",
            "title": guidance.TITLE,
            "description": guidance.RESOURCE,
            "mimeType": _MIME,
            "annotations": {"audience": ["assistant"], "priority": 1.0},
        }
        return {"resources": [resource]}

    def _read_resource(self, request: RpcRequest) -> JsonObject:
        memory = self._memory_text()
        if request.params.get("uri") != MEMORY_URI or memory is None:
            code = INVALID_PARAMS if request_version(request) else RESOURCE_NOT_FOUND
            uri = str(request.params.get("uri"))[:200]
            raise ProtocolError(code, f"There is no resource {uri!r}.", {"uri": uri})
        parts = [(MEMORY_URI, memory.text or guidance.NOTHING), (CHANGES_URI, memory.changes())]
        return {"contents": [{"uri": uri, "mimeType": _MIME, "text": text} for uri, text in parts if text]}

    def _list_prompts(self, request: RpcRequest) -> JsonObject:
        prompt = {"name": _PROMPT, "title": guidance.TITLE, "description": guidance.PROMPT, "arguments": []}
        return {"prompts": [] if self._memory_text() is None else [prompt]}

    def _get_prompt(self, request: RpcRequest) -> JsonObject:
        memory = self._memory_text()
        if request.params.get("name") != _PROMPT or memory is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no prompt {str(request.params.get('name'))[:100]!r}.")
        parts = [guidance.PROMPT_HEAD, memory.text or guidance.NOTHING, memory.changes()]
        text = "\n\n".join(part for part in parts if part)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": guidance.PROMPT, "messages": [message]}

    def _memory_text(self) -> MemoryText | None:
        """Returns the memory text that was frozen for the one client, or the live one."""
        if self._frozen is not None:
            return self._frozen
        memory = self._tool_host.memory_text()
        if self._one_client:
            self._frozen = memory
        return memory


def describe_tool(tool: Tool) -> JsonObject:
    """Describes a tool as `tools/list` returns it."""
    return {
        "name": tool.name,
        "title": tool.facts.title or tool.name,
        "description": tool.description,
        "inputSchema": {"properties": {}} | tool.parameters | {"type": "object"},
        "annotations": _hints(tool.facts),
    }


def _hints(facts: ToolFacts) -> JsonObject:
    """The hints by which clients decide what to ask their user about."""
    hints: JsonObject = {
        "readOnlyHint": facts.read_only,
        "destructiveHint": facts.destructive,
        "idempotentHint": facts.idempotent,
        "openWorldHint": facts.open_world,
    }
    return {"title": facts.title} | hints if facts.title else hints
