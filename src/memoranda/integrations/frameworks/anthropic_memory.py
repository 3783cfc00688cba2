"""Anthropic's memory tool over a home: a virtual directory `/memories`, with limits, a scanner and a history.

    runner = client.beta.messages.tool_runner(model=…, tools=[MemorandaMemoryTool(memory)], messages=[…], max_tokens=…)

Needs the package anthropic (extra `anthropic`). `memory_directory.memory_tool` does the same without it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from anthropic import BaseModel
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import BetaCacheControlEphemeralParam

from memoranda.errors import MemorandaError
from memoranda.integrations.frameworks import blocking_calls
from memoranda.integrations.frameworks.memory_directory import FileError, MemoryDirectory

if TYPE_CHECKING:
    from memoranda.api.memory import Memory


class MemorandaMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of one user, for the tool runner of a synchronous client."""

    def __init__(
        self,
        memory: "Memory",
        *,
        session_id: str = "",
        heard: Callable[[], Sequence[str]] = tuple,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """`session_id` and `heard` as in `memory_tool`."""
        super().__init__(cache_control=cache_control)
        self.directory = MemoryDirectory(memory, session_id=session_id, heard=heard)

    def call(self, input: object) -> str:
        """Answer a call, whatever its arguments are; raises ToolError with what the model should know."""
        return _answer(self.directory, input)

    def _run(self, command: BaseModel) -> str:
        return self.call(command.to_dict())

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        """Delete every file; each deletion can be undone."""
        return self.directory.clear()


class AsyncMemorandaMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool of one user, for the tool runner of an asynchronous client; it never blocks the event loop."""

    def __init__(
        self,
        memory: "Memory",
        *,
        session_id: str = "",
        heard: Callable[[], Sequence[str]] = tuple,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """`session_id` and `heard` as in `memory_tool`."""
        super().__init__(cache_control=cache_control)
        self.directory = MemoryDirectory(memory, session_id=session_id, heard=heard)

    async def call(self, input: object) -> str:
        """Answer a call, whatever its arguments are; raises ToolError with what the model should know."""
        return await blocking_calls.run_to_end(_answer, self.directory, input)

    async def _run(self, command: BaseModel) -> str:
        return await self.call(command.to_dict())

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        """Delete every file; each deletion can be undone."""
        return await blocking_calls.run_to_end(self.directory.clear)


def _answer(directory: MemoryDirectory, arguments: Any) -> str:
    try:
        return directory.call(arguments)
    except (FileError, MemorandaError) as error:
        raise ToolError(str(error)) from error
