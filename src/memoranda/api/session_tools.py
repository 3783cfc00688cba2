"""The tools of one session: memory, search, skills and the provider's, as far as its platform allows them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memoranda.api.provider_tools import FindTool, restore_tools
from memoranda.api.services import HomeServices
from memoranda.api.session_options import SessionOptions
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool, SourcesOf
from memoranda.memory.skills.catalogue import render_skill_list
from memoranda.memory.skills.tool import SkillTools
from memoranda.safety.fence import screen_tools
from memoranda.support.origin import Origin
from memoranda.support.tool import Tool

if TYPE_CHECKING:
    from memoranda.models.model import ChatModel


class SessionTools:
    """Builds the tools of a session; `bind` names the session in the journals of what they write."""

    def __init__(
        self, services: HomeServices, options: SessionOptions, store: MemoryStore, sources_of: SourcesOf
    ) -> None:
        """`sources_of` says which untrusted text may have suggested what the agent writes."""
        self._sources_of = sources_of
        self._services = services
        self._options = options
        self._store = store
        self._skills = services.skills_for(options.user)
        # The provider's tools as they are stored in the session's row; None in a new session.
        self.stored_provider_tools: Any = None
        # The model that answers in the session; None until one does.
        self.chat_model: ChatModel | None = None

    def bind(self, session_id: str) -> None:
        """Build the tools for a session, which is another one after compression."""
        self._memory_tool = MemoryTool(self._store, Origin("agent", session_id), self._sources_of)
        self._skill_tools = SkillTools(self._skills, Origin("agent", session_id))
        self._session_id = session_id

    def begin_turn(self) -> None:
        """Start counting failed memory calls from zero."""
        self._memory_tool.begin_turn()

    def definitions(self, provider_tools: Iterable[Tool], find_tool: FindTool) -> tuple[Tool, ...]:
        """Everything the model may call; a part that is switched off offers no tool.

        A resumed session offers the providers' tools as they were, whatever they offer now; `find_tool` finds them.
        """
        options = self._options
        search = self._services.search_tool(options.user, self._session_id, options.directory, self.chat_model)
        restored = restore_tools(self.stored_provider_tools, tuple(provider_tools), find_tool)
        own = (*self._memory_tool.definitions(), *search.definitions(), *self._skill_tools.definitions())
        return screen_tools((*self._filter_allowed(own), *restored))

    def for_review(self, session_id: str) -> tuple[Tool, ...]:
        """Memory and skill tools whose writes are journalled as a review's, and not mirrored to the provider."""
        reviewer = Origin("review", session_id)
        store = self._services.curated_for(self._options.user)
        store.load_from_disk()
        skills = SkillTools(self._services.skills_for(self._options.user), reviewer)
        return screen_tools(self._filter_allowed((*MemoryTool(store, reviewer).definitions(), *skills.definitions())))

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
        from memoranda.agent.delegation import READ_ONLY_TOOLS

        return tool in READ_ONLY_TOOLS

    def _filter_allowed(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        return tuple(tool for tool in tools if self.allows(tool.name))
