"""Which memory a project has: clones, forks, and a directory that became a repository share one."""

from collections.abc import Sequence

from memoranda.memory.curated.settings import Target, project_in, project_target
from memoranda.support.projects import is_path, matching_projects, project_of, read_project


def find_target(targets: Sequence[Target], identity: str) -> Target:
    """The target of a project among those that have a file, or the one that its first entry creates."""
    own = project_target(identity)
    known = {target: project_in(target) for target in targets if project_in(target)}
    if own in known or not known:
        return own
    wanted = read_project(identity)
    for target, other in known.items():
        # A directory belongs to the repository that it is now, or to the directory that a link in its place leads to.
        today = (project_of(other) or other) if is_path(other) else other
        if wanted.is_same(read_project(today)) or today == identity:
            return target
    return own


def targets_named(targets: Sequence[Target], projects: Sequence[str], name: str) -> list[Target]:
    """The targets that the name of a project can mean, among those with a file and the projects that are known."""
    known = dict.fromkeys([*filter(None, map(project_in, targets)), *projects])
    matches = matching_projects(known, name)
    return [*dict.fromkeys(find_target(targets, identity) for identity in known if identity in matches)]
