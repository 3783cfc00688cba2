"""An opened home: `Memory` opens sessions, and agents that work in them; `memory.items` are JSON values of a user."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast, overload

from memoranda.api.checked_calls import (
    NotAsync,
    call_tool,
    refuse_unknown_options,
    remember,
    require_hook,
    require_range,
)
from memoranda.api.services import HomeServices, new_session_id
from memoranda.errors import SessionError
from memoranda.home import config
from memoranda.memory.curated.settings import Target
from memoranda.support.home import Home
from memoranda.support.lazy_attribute import lazy_attribute
from memoranda.support.origin import Origin
from memoranda.support.tool import InvalidArgumentsError, JsonObject, Tool

if TYPE_CHECKING:
    from memoranda.agent.compression.trigger import ContextEngine
    from memoranda.agent.events import Event
    from memoranda.agent.loop import Agent
    from memoranda.agent.review.report import ReviewReport
    from memoranda.api.agents import Agents
    from memoranda.api.items import MemoryItems
    from memoranda.api.recall import RecallResult
    from memoranda.api.session import Session
    from memoranda.api.session_parts.options import GatewayFacts
    from memoranda.api.session_parts.state import PromptPreview
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.curated.store import MemoryStore
    from memoranda.memory.curated.tool import MemoryTool
    from memoranda.models.model import ChatModel, OnText
    from memoranda.search.summaries import Summarize
    from memoranda.types import (
        ConversationAnswer,
        CurateAnswer,
        MemoryAnswer,
        RecentAnswer,
        SearchAnswer,
        SearchFilters,
    )
    from memoranda.upkeep.forgetting.report import ForgetReport


class Memory(NotAsync):
    """An opened home, for one user of it or for the home itself."""

    def __init__(
        self,
        home: Home,
        settings: config.Config,
        user: str | None = None,
        *,
        summarize: "Summarize | None" = None,
        services: HomeServices | None = None,
    ) -> None:
        """`services` are those of another `Memory` of the same home, which closes them."""
        self.home = home
        self.config = settings
        self.user = user
        self._home_services = services or HomeServices(home, settings, summarize=summarize)
        self._owns_services = services is None
        self.services = self._home_services.for_user(user)
        if user is not None:
            # Refuses an id that cannot be used.
            self.services.curated_for(user)
        self._agents_lock = Lock()
        self._agents: Agents | None = None

    @lazy_attribute
    def curated(self) -> "MemoryStore":
        """The curated memory of this user, with the snapshot of its first use."""
        store = self.services.curated_for(self.user)
        store.load_from_disk()
        store.written = lambda receipt, origin: self.services.queue_memory_write(store, receipt, origin, self.user)
        return store

    @lazy_attribute
    def _memory_tool(self) -> "MemoryTool":
        from memoranda.memory.curated.tool import MemoryTool

        # What a program calls by itself is the program's own words.
        return MemoryTool(self.curated, Origin("agent"))

    def for_user(self, user: str | None) -> "Memory":
        """The same home for another user, over the same open stores; closing this object closes those."""
        self.services.require_open()
        return Memory(self.home, self.config, user, services=self._home_services)

    def session(
        self,
        *,
        source: str = "library",
        model: str = "",
        user: str | None = None,
        session_id: str | None = None,
        directory: str | Path | None = None,
        instructions: str = "",
        parent: str | None = None,
        context_engine: "ContextEngine | None" = None,
        **facts: "Unpack[GatewayFacts]",
    ) -> "Session":
        """Start a session, or resume one by its id; its prompt is built now, or restored as it was.

        A conversation that was compressed meanwhile is resumed in its latest session.
        `user` selects the memory and the conversations of one user of a gateway. `directory` is where the user works:
        its project files (AGENTS.md …) and the memory of its project become part of the prompt. `instructions` are your
        own text for the prompt.
        With a `parent` the session is work that the parent delegated.
        `facts` are what a gateway knows about the conversation (platform, chat_id, user_name …, see `GatewayFacts`),
        for the external memory; `platform` also selects the toolsets, instead of `source`. `context_engine` is notified
        of every session that the conversation starts, and why. Raises TypeError for an unknown fact.
        """
        from memoranda.api.session import Session
        from memoranda.api.session_parts.options import GATEWAY_FACTS, SessionOptions, choose_user, clean_facts

        require_hook("context_engine", context_engine, "on_session_start")
        known = (*(Memory.session.__kwdefaults__ or ()), *GATEWAY_FACTS)
        refuse_unknown_options("session", facts.keys() - set(known), known)
        self.services.require_open()
        user = choose_user(user, facts)
        options = SessionOptions(
            source=self.services.stored_name(source),
            user=self.user if user is None else user,
            model=model,
            directory=Path(directory).absolute() if directory is not None else None,
            instructions=instructions,
            parent=parent and self.services.stored_name(parent),
            relation="delegation" if parent else None,
            platform=facts.get("platform", ""),
            external=parent is None,
            facts=clean_facts(facts),
            context_engine=context_engine,
        )
        services = self._home_services.for_user(options.user)
        if session_id is None:
            return Session(services, new_session_id(), options, is_new=True)
        return Session(services, services.latest_session(session_id, options.user), options, is_new=False)

    def agent(
        self,
        model: "ChatModel | None" = None,
        *,
        session: "Session | None" = None,
        tools: Sequence[Tool] = (),
        on_text: "OnText | None" = None,
        on_event: "Callable[[Event], None] | None" = None,
        on_review: "Callable[[ReviewReport], None] | None" = None,
    ) -> "Agent":
        """An agent that works in a session: `memory.agent().turn("Hello")` is the whole loop.

        Without a model it uses the one that is configured; without a session it starts one. `tools` are your own,
        offered in addition to those of memory. `on_text` receives the answer as it is written, `on_event` the events
        of a turn, and `on_review` what a background review saved, from its own thread.
        """
        agents = self._get_agents()
        model = model or agents.configured_model()
        return agents.create_agent(
            model,
            session or self.session(model=model.name),
            tools=tools,
            on_text=on_text,
            on_event=on_event,
            on_review=on_review,
        )

    @property
    def sessions(self) -> "SessionDB":
        """The conversations of this user: everything that was recorded, and search over it."""
        return self.services.sessions_for(self.user)

    @property
    def items(self) -> "MemoryItems":
        """The items of this user: values under a namespace and a key, with a history, found by their words."""
        from memoranda.api.items import MemoryItems

        return MemoryItems(lambda: self.sessions)

    @overload
    def search(
        self,
        query: str = "",
        *,
        limit: int | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        cursor: str | None = None,
        why: bool = False,
        **filters: "Unpack[SearchFilters]",
    ) -> "SearchAnswer": ...
    @overload
    def search(
        self,
        *,
        session_id: str,
        around_message_id: int | None = None,
        window: int | None = None,
        cursor: str | None = None,
    ) -> "ConversationAnswer": ...
    def search(
        self,
        query: str = "",
        *,
        limit: int | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        cursor: str | None = None,
        why: bool = False,
        session_id: str | None = None,
        around_message_id: int | None = None,
        window: int | None = None,
        **filters: "Unpack[SearchFilters]",
    ) -> "SearchAnswer | ConversationAnswer":
        """Find past conversations, with the exact messages; without a query, the latest ones.

        `limit` is 1 to 50 conversations (3 if left out), `sort` orders by time instead of by relevance. `filters`
        narrow the search (`memoranda.types.SearchFilters`); `why` adds how each result got its place.
        With a `session_id` the answer is that conversation, from its start or around one message, with up to `window`
        messages (1 to 20) on either side. A `cursor` from an answer continues it.
        Raises SessionError for a value that cannot be used, and TypeError for an unknown option.
        """
        from memoranda.search.request import MAX_LISTED, MAX_WINDOW, NAMES, search_pages

        refuse_unknown_options("search", filters.keys() - set(NAMES), NAMES[1:])
        require_range("limit", limit, MAX_LISTED)
        require_range("window", window, MAX_WINDOW)
        self.services.require_open()
        self.services.open_existing_record()
        tool = self.services.search_tool(self.user)
        named = {"query": query, "sort": sort, "cursor": cursor, "why": why, "session_id": session_id, **filters}
        try:
            request = tool.read({**named, "around_message_id": around_message_id, "window": window})
            answer = search_pages(tool.answer, request, limit) if limit else tool.answer(request)
        except InvalidArgumentsError as error:
            raise SessionError(str(error)) from None
        if not answer["success"]:
            raise SessionError(answer["error"])
        return cast("SearchAnswer | ConversationAnswer", answer)

    def recall(
        self,
        question: str,
        *,
        limit: int = 3,
        project: str | None = None,
        source: str = "library",
        session_id: str = "",
    ) -> "RecallResult":
        """Ask every part of memory at once: entries, external memory, conversations. `block()` is for a prompt.

        Conversations of which a search would be unsure are left out.
        The recall log shows what was found; `source` and `session_id` say there who asked, and in which conversation.
        """
        from memoranda.api.recall import recall

        self.services.require_open()
        return recall(self, question, limit=limit, project=project, source=source, session_id=session_id)

    def recent(self, project: str | None = None, *, limit: int = 3) -> "RecentAnswer":
        """What was going on: the last conversations of a project over all agents, or of all projects, without a model.

        `project` is a name, a directory, or "this" for that of the working directory. Prompts that ask to continue
        get the `text` of the answer. Raises SessionError for "this" outside of any project.
        """
        from memoranda.api.recent import recent

        require_range("limit", limit, 20)
        self.services.require_open()
        return recent(self.services, self.user, project, limit)

    @property
    def tools(self) -> tuple[Tool, ...]:
        from memoranda.safety.fence import screen_tools

        return (*screen_tools(self._memory_tool.definitions()), *self._search_tools)

    @lazy_attribute
    def _search_tools(self) -> tuple[Tool, ...]:
        from memoranda.safety.fence import screen_tools

        return screen_tools(self.services.search_tool(self.user).definitions())

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as a model would, outside any session: a dict in, a dict out; a refusal after `close`."""
        tools = self._search_tools
        if all(tool.name != name for tool in tools):
            self._memory_tool.begin_turn()
            tools = self.tools
        return call_tool(tools, name, arguments, self.services.require_open)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of a target as they may be shown: MEMORY.md, USER.md, or "project:" with a name."""
        from memoranda.api.project_memory import find_target

        self.services.require_open()
        return self.curated.entries(find_target(self, target))

    def curate(self, apply: bool = False, *, model: bool = True) -> "CurateAnswer":
        """What the curator would change in curated memory, by rules; with `apply` it is done.

        A run is one change, which one undo takes back. What leaves a file is kept as a note: an item in the
        namespace `("curated-notes", target)`. The model that `curate.model` names, if any, suggests merges and shorter
        wordings, unless `model` is False; one that loses or adds something is not among the changes.
        """
        from memoranda.api.curate import curate

        if not isinstance(apply, bool):
            raise TypeError(f"curate() takes apply=True or apply=False, not {apply!r}.")
        self.services.require_open()
        return curate(self.services, self.curated, self.user, apply=apply, directory=Path.cwd(), model=model)

    def status(self) -> JsonObject:
        """How full and old memory is, what awaits a decision, and what was saved this week, as `memoranda status`."""
        from memoranda.api.status import memory_status

        self.services.require_open()
        return memory_status(self.services, self.curated, self.user, directory=Path.cwd())

    def preview_prompt(self, source: str = "library") -> "PromptPreview":
        """The prompt that a new session would get, section by section with its tokens; starts no session."""
        from memoranda.api.session_parts.state import preview_prompt

        self.services.require_open()
        return preview_prompt(self.services, self.user, source)

    def remember(self, text: str, target: Target = "memory", *, key: str = "", until: str = "") -> "MemoryAnswer":
        """Save a fact at a person's request; the receipt says what was saved, where, and from when it is visible.

        With a `key` the text is its value ("time zone: Europe/Berlin") and replaces the earlier one. `until` is the
        last day on which it is true, such as "2027-01-31" or "2w"; later prompts leave it out.
        """
        from memoranda.api.project_memory import find_target

        self.services.require_open()
        return remember(self.curated, text, find_target(self, target), "", key=key, until=until)

    def get(self, key: str) -> str | None:
        """The value that was remembered under a key; None if there is none, or its last day is over."""
        self.services.require_open()
        return self.curated.get(key)

    def forget(
        self,
        text: str | None = None,
        *,
        session: str | None = None,
        entry: str | None = None,
        user: str | None = None,
        whole_words: bool = False,
        dry_run: bool = False,
    ) -> "ForgetReport":
        """Forget a text, a conversation (by id), an entry (its handle, or a part of it) or a user, everywhere.

        The report lists every place, what was done there and, after reading every byte of the home, what is left.
        `dry_run` only lists. A text is found in any case, spacing and Unicode form, and as a part of words unless
        `whole_words`; messages keep the rest of their text, entries are removed as a whole. This covers what belongs to
        the user of this object, and for the owner of the home all profiles. No tool offers it to a model.
        Raises SessionError unless exactly one of the four is given, or if no entry is meant. Of a conversation or a
        user that does not exist there is nothing to forget, and the report says that nothing is left.
        """
        from memoranda.api.forget import forget
        from memoranda.upkeep.forgetting.report import ForgetSubject

        self.services.require_open()
        return forget(self.services, self.user, ForgetSubject(text, session, entry, user, whole_words), dry_run=dry_run)

    def close(self) -> None:
        """Close everything that was opened; every write was durable when it was answered."""
        if self._agents is not None:
            self._agents.close()
        if self._owns_services:
            self._home_services.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get_agents(self) -> "Agents":
        from memoranda.api.agents import Agents

        with self._agents_lock:
            if self._agents is None:
                self._agents = Agents(self.services, self.session)
            return self._agents


def open_memory(
    home: str | Path | None = None,
    *,
    profile: str | None = None,
    user: str | None = None,
    summarize: "Summarize | None" = None,
) -> Memory:
    """Open a home: the one given, else MEMORANDA_HOME, else ~/.memoranda. Nothing is written until you write.

    `summarize` is an option for search: a function from instructions and a transcript to a short text.
    """
    located = config.locate_home(home, profile)
    located.refuse_if_foreign()
    return Memory(located, config.load(located), user, summarize=summarize)
