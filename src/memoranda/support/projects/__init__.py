"""Projects: a repository is the same one in every clone and worktree, wherever they lie.

`remotes` makes one name of the many ways to write where a repository is published, `identity` says what a project is
called and which names mean the same one, `git` asks git, `finding` goes from a directory to its project.
"""

from memoranda.support.projects.identity import Project, matching_projects, project_at, project_name
from memoranda.support.projects.project_lookup import project_of

__all__ = ["Project", "matching_projects", "project_at", "project_name", "project_of"]
