"""Which target a person means who names a project: `project:heron`, `project:owner/name`, or its whole identity."""

from typing import TYPE_CHECKING, Protocol

from memoranda.errors import SessionError
from memoranda.memory.curated.settings import PROJECT, Target, is_project, project_in
from memoranda.support.projects import is_path, project_name

if TYPE_CHECKING:
    from memoranda.api.services import HomeServices
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.curated.store import MemoryStore


class ProjectMemory(Protocol):
    """What is needed of a `Memory`."""

    @property
    def curated(self) -> "MemoryStore": ...
    @property
    def services(self) -> "HomeServices": ...
    @property
    def sessions(self) -> "SessionDB": ...


def find_target(memory: ProjectMemory, target: Target) -> Target:
    """The target that is meant; one without the name of a project is itself.

    Raises SessionError for a project that no conversation and no memory has, or that several have.
    """
    if not is_project(target) or target == PROJECT:
        return target
    from memoranda.memory.curated import projects

    targets = memory.curated.storage.targets()
    if target in targets:
        return target
    name = project_in(target)
    known = [*memory.sessions.known_projects()] if memory.services.has_record else []
    found = projects.targets_named(targets, known, name)
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(project_name(project_in(each)) for each in found)
        raise SessionError(f"{name!r} can mean several projects: {names}. Nothing was changed; name one of them.")
    if "#" not in name and "/" not in name and not is_path(name):
        raise SessionError(f"No conversation and no memory has a project {name!r}. Nothing was changed.")
    return projects.find_target(targets, name)
