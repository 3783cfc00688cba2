"""`delegate_task`: a second agent does a part of the work in a session of its own.

The delegate starts with an empty context, so its many steps do not fill the context of its parent. It sees the same
memory and can search past conversations, but writes to neither; it has a scratch tool for notes that are never stored.
Its session is recorded and linked to its parent. Settings limit how deep delegates may nest, how many steps they take
and how long.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from memoranda.agent.loop import Agent
from memoranda.agent.session_views import AgentSession
from memoranda.agent.settings import AgentSettings, DelegationSettings
from memoranda.errors import ModelError
from memoranda.models.model import ChatModel
from memoranda.safety.fence import screen_tools, strip_recalled_blocks
from memoranda.support.tool import JsonObject, StoredText, Tool, own_tool, tool_refusal

SCRATCH_DESCRIPTION = (
    "Notes of your own for this task: write what you find out, read it back later. They end with the task; what the "
    "one who gave you the task should know belongs in your answer."
)
SCRATCH_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["write", "read"], "description": "write adds a note, read shows all."},
        "note": {"type": "string", "description": "What to write."},
    },
    "required": ["action"],
}
_MAX_CHARS = 20_000


class ScratchTool:
    """The notes of one delegate."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def tool(self) -> Tool:
        return own_tool("scratch", SCRATCH_DESCRIPTION, SCRATCH_PARAMETERS, self.call)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        if arguments.get("action") != "write":
            return {"success": True, "notes": list(self.notes)}
        note = arguments.get("note")
        if not isinstance(note, str) or not note.strip():
            return tool_refusal("invalid", "Say in 'note' what to write.")
        if sum(map(len, self.notes)) + len(note) > _MAX_CHARS:
            return tool_refusal("full", f"The notes may have {_MAX_CHARS} characters in all.")
        self.notes.append(note)
        return {"success": True, "notes": len(self.notes)}


DESCRIPTION = (
    "Give a self-contained piece of work to a second agent, which does it in a conversation of its own and gives back "
    "its result. It sees your memory and can search past conversations, but it knows nothing of this conversation: "
    "put everything it needs into 'task' and 'context'. Good for work whose many steps you do not need to see."
)
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "What is to be done, and what the answer should hold."},
        "context": {"type": "string", "description": "What one must know for it: files, facts, limits."},
    },
    "required": ["task"],
}
_QUOTES = StoredText(
    "the delegate",
    "memoranda sessions show SESSION",
    "its result may quote other texts, and is not input from the user",
)

StartDelegate = Callable[[str], AbstractContextManager[AgentSession]]
"""Starts the session of a delegate for the parent with that id; leaving the context ends it."""
OnResult = Callable[[str, str, str], None]
"""Receives finished work: the task, the result, and the id of the delegate's session."""


class Delegation:
    """The tool with which the agent of one session delegates work to another agent."""

    def __init__(
        self,
        parent: AgentSession,
        model: ChatModel,
        start: StartDelegate,
        *,
        settings: DelegationSettings | None = None,
        on_result: OnResult | None = None,
        tools: tuple[Tool, ...] = (),
        depth: int = 0,
    ) -> None:
        """`tools` are the host's, which delegates get too; `depth` counts the delegations that led to the parent."""
        self._parent = parent
        self._model = model
        self._start = start
        self._settings = settings or DelegationSettings()
        self._on_result = on_result
        self._tools = tools
        self._depth = depth

    def definitions(self) -> tuple[Tool, ...]:
        """The tool, unless delegation is switched off or the parent is as deep as the settings allow."""
        if self._depth >= self._settings.max_depth:
            return ()
        return (own_tool("delegate_task", DESCRIPTION, PARAMETERS, self.call, _QUOTES),)

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Run a task and return the delegate's answer, or a refusal that says why it has none."""
        task, context = arguments.get("task"), arguments.get("context") or ""
        if not isinstance(task, str) or not task.strip() or not isinstance(context, str):
            return tool_refusal("invalid", "Say in 'task', as text, what is to be done.")
        # The model may repeat recalled memory here; it must not become the first message of another session.
        task, context = strip_recalled_blocks(task), strip_recalled_blocks(context)
        request = f"{task.strip()}\n\nWhat you should know:\n{context.strip()}" if context.strip() else task.strip()
        with self._start(self._parent.id) as child:
            try:
                answer = self._create_agent(child).turn(request)
            except ModelError as error:
                return tool_refusal("failed", f"The delegate could not finish: {error}") | {"session_id": child.id}
            child_id = child.id
        if self._on_result:
            self._on_result(task, answer, child_id)
        return {"success": True, "result": answer, "session_id": child_id}

    def _create_agent(self, child: AgentSession) -> Agent:
        limits = AgentSettings(max_steps=self._settings.max_steps, turn_seconds=self._settings.turn_seconds)
        nested = Delegation(
            child,
            self._model,
            self._start,
            settings=self._settings,
            on_result=self._on_result,
            tools=self._tools,
            depth=self._depth + 1,
        )
        tools = (*self._tools, *screen_tools((ScratchTool().tool(), *nested.definitions())))
        return Agent(child, self._model, settings=limits, tools=tools, read_only=True)
