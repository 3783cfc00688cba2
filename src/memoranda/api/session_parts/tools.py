"""The tools of one session: memory, search, skills, tasks and the provider's, as far as its platform allows them.

A request to a model begins with the tools, so a missing tool would invalidate the whole cached prefix. The providers'
tools of a session therefore stay the same when it is resumed, even if a provider is gone or one was added.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoranda.api.services import HomeServices
from memoranda.api.session_parts.options import SessionOptions
from memoranda.api.session_parts.writes import UntrustedText, words_support
from memoranda.memory.curated.settings import project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.memory.skills.catalogue import render_skill_list
from memoranda.memory.skills.tool import SkillTools
from memoranda.safety.fence import screen_tools
from memoranda.support.origin import Origin
from memoranda.support.tool import JsonObject, Tool, facts_of, tool_refusal

if TYPE_CHECKING:
    from memoranda.api.services import HomeServices
    from memoranda.models.model import ChatModel

# The column of a session's row that stores the providers' tools.
PROVIDER_TOOLS = "provider_tools"

# Finds the tool that an earlier session knew, by its name there and its provider; the provider may be unknown.
FindTool = Callable[[str, str], Tool | None]


def tools_as_columns(tools: Sequence[Tool], provider_of: Callable[[str], str]) -> dict[str, Any]:
    """The columns that store the providers' tools with a session."""
    if not tools:
        return {}
    stored = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "provider": provider_of(tool.name),
        }
        for tool in tools
    ]
    return {PROVIDER_TOOLS: stored}


def restore_tools(stored: Any, tools: Sequence[Tool], find_tool: FindTool) -> tuple[Tool, ...]:
    """The stored tools, executed by the providers' current ones; the current ones when none are stored."""
    stored_tools = [tool for tool in stored if _is_tool(tool)] if isinstance(stored, list) else []
    return tuple(_restore(tool, find_tool) for tool in stored_tools) if stored_tools else tuple(tools)


def _restore(stored: Mapping[str, Any], find_tool: FindTool) -> Tool:
    name, description, parameters = stored["name"], stored["description"], stored["parameters"]
    current = find_tool(name, str(stored.get("provider") or ""))
    if current is None:
        return Tool(name, description, parameters, _unavailable)
    return replace(current, description=description, parameters=parameters)


def _is_tool(stored: Any) -> bool:
    return (
        isinstance(stored, Mapping)
        and isinstance(stored.get("name"), str)
        and isinstance(stored.get("description"), str)
        and isinstance(stored.get("parameters"), dict)
    )


def _unavailable(arguments: Mapping[str, Any]) -> JsonObject:
    return tool_refusal("unavailable", "This tool is not available: its memory provider is not in use now.")


class SessionTools:
    """Builds the tools of a session; `bind` names the session in the journals of what they write."""

    def __init__(
        self, services: HomeServices, options: SessionOptions, store: MemoryStore, untrusted: UntrustedText
    ) -> None:
        """`untrusted` says which untrusted text may have suggested what the agent writes."""
        self._untrusted = untrusted
        self._services = services
        self._options = options
        self._store = store
        self._skills = services.skills_for(options.user)
        # The provider's tools as they are stored in the session's row; None in a new session.
        self.stored_provider_tools: Any = None
        self._chat_model: ChatModel | None = None

    def bind(self, session_id: str) -> None:
        """Build the tools for a session, which is another one after compression."""
        sources_of = self._untrusted.sources_of
        message_of = self._untrusted.last_user_message
        self._memory_tool = MemoryTool(self._store, Origin("agent", session_id), sources_of, message_of)
        asks_person = self._store.settings.untrusted_writes != "save"
        self._skill_tools = SkillTools(self._skills, Origin("agent", session_id), sources_of if asks_person else None)
        self._session_id = session_id
        self._own_tools: tuple[Tool, ...] | None = None

    def use_model(self, model: "ChatModel") -> None:
        """Set the model that answers in the session: it may summarize what a search finds."""
        self._chat_model = model
        self._own_tools = None

    def begin_turn(self) -> None:
        """Start counting failed memory calls from zero."""
        self._memory_tool.begin_turn()

    def definitions(self, provider_tools: Iterable[Tool], find_tool: FindTool) -> tuple[Tool, ...]:
        """Everything the model may call; a part that is switched off offers no tool.

        A resumed session offers the providers' tools as they were, whatever they offer now; `find_tool` finds them.
        """
        if self._own_tools is None:
            self._own_tools = self._screen(self._filter_allowed(self._build_own_tools()))
        restored = restore_tools(self.stored_provider_tools, tuple(provider_tools), find_tool)
        return (*self._own_tools, *self._screen(restored)) if restored else self._own_tools

    def _build_own_tools(self) -> tuple[Tool, ...]:
        options = self._options
        search = self._services.search_tool(options.user, self._session_id, options.directory, self._chat_model)
        return (*self._memory_tool.definitions(), *search.definitions(), *self._skill_tools.definitions())

    def _screen(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        return tuple(map(self._noted, screen_tools(tools)))

    def _noted(self, tool: Tool) -> Tool:
        """A tool whose calls are noted if its answers contain text of others: not every program records them."""

        def call(arguments: Any) -> JsonObject:
            self._untrusted.note_call(tool.name)
            return tool.call(arguments)

        return replace(tool, call=call) if facts_of(tool.name).words == "others" else tool

    def for_review(self, session_id: str, user_texts: Sequence[str]) -> tuple[Tool, ...]:
        """Memory and skill tools whose writes are journalled as a review's, and not mirrored to the provider.

        What the user's texts do not support has the review as its source.
        """
        reviewer = Origin("review", session_id)

        def sources_of(texts: Sequence[str], *, latest: bool = False) -> tuple[str, ...]:
            said = user_texts[-1:] if latest else user_texts
            return () if words_support(said, texts) else ("a review of the conversation",)

        store = self._services.curated_for(self._options.user, project_in(self._store.project or "") or None)
        store.load_from_disk()
        skills = SkillTools(self._services.skills_for(self._options.user), reviewer)
        return screen_tools(
            self._filter_allowed((*MemoryTool(store, reviewer, sources_of).definitions(), *skills.definitions()))
        )

    def skill_index(self) -> str:
        """The list of skills for the prompt."""
        return render_skill_list(self._skills.catalogue(), self._skills.settings.index_char_limit)

    def allows(self, tool: str) -> bool:
        """Whether the session's platform has a tool; delegated work only gets tools that change nothing."""
        toolset = self._services.config.toolsets.get(self._options.platform or self._options.source)
        if toolset is not None and tool not in toolset:
            return False
        if self._options.relation != "delegation":
            return True
        return facts_of(tool).read_only

    def _filter_allowed(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        return tuple(tool for tool in tools if self.allows(tool.name))
