"""Projects: a repository is the same one in every clone and worktree, wherever they lie.

`remotes` makes one name of the many ways to write where a repository is published, `identity` says what a project is
called and which names mean the same one, `git` asks git, `finding` goes from a directory to its project.
"""

from memoranda.support.projects.finding import project_of
from memoranda.support.projects.identity import Project, among, project_at, project_name

__all__ = ["Project", "among", "project_at", "project_name", "project_of"]
