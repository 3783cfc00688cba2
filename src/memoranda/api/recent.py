"""`Memory.recent`: what was going on, for a person, and for a prompt that asks to continue."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict

from memoranda.api.services import HomeServices
from memoranda.errors import SessionError
from memoranda.importers.sources import resume_command
from memoranda.search.continue_prompts import asks_to_continue, asks_what_was_done
from memoranda.search.dates import TimeRange, time_ranges
from memoranda.search.guidance import NOWHERE
from memoranda.search.recent_work import RecentConversation, recent_block, recent_conversations
from memoranda.support.projects import project_of, projects_named
from memoranda.types import RecentAnswer


def recent(
    services: HomeServices, user: str | None, project: str | None, limit: int, question: str = ""
) -> RecentAnswer:
    """The last conversations of a project, or of all without one; raises SessionError for "this" outside of any.

    With a question only those of the time that it names.
    """
    if project is not None and project.strip().lower() == "this":
        project = project_of(os.getcwd())
        if project is None:
            raise SessionError(NOWHERE)
    ranges = time_ranges(question, time.time(), on_weekdays=True)
    found = _find(services, user, project, limit=limit, ranges=ranges)
    found = [each for each in found if not ranges or any(start <= each.last_active <= end for start, end in ranges)]
    return {
        "conversations": [{**asdict(each), "open_tasks": list(each.open_tasks)} for each in found],  # type: ignore[typeddict-item]
        "text": recent_block(found),
    }


def recent_for_prompt(
    services: HomeServices,
    user: str | None,
    prompt: str,
    project: str | None,
    *,
    is_own: Callable[[str], bool],
    begins: bool,
) -> str:
    """The fenced block for a prompt that asks to continue; "" for every other prompt.

    `is_own` says which sessions the model has in its context. Unless the conversation `begins` with this prompt, a bare
    "go on" is about what was said in it.
    """
    if not (asks_to_continue(prompt) if begins else asks_what_was_done(prompt)):
        return ""
    return recent_block(
        _find(services, user, project, is_own=is_own, ranges=time_ranges(prompt, time.time(), on_weekdays=True))
    )


def _find(
    services: HomeServices,
    user: str | None,
    project: str | None,
    *,
    limit: int = 3,
    is_own: Callable[[str], bool] = lambda session_id: False,
    ranges: list[TimeRange] | None = None,
) -> list[RecentConversation]:
    if not services.has_record:
        return []
    store = services.sessions_for(user)
    return recent_conversations(
        store,
        projects=None if project is None else projects_named(store.known_projects(), project),
        excluded_sources=services.config.recall.hidden_sources,
        without=is_own,
        ranges=ranges or (),
        limit=limit,
        resume=resume_command,
    )
