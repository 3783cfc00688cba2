"""Projects: a repository is the same one in every clone and worktree, wherever they are; else a directory is one.

`identity` names a project and says which names mean the same one; `project_lookup` asks git for the project of a
directory.
"""

from memoranda.support.projects.identity import Project, is_path, matching_projects, project_at, project_name
from memoranda.support.projects.project_lookup import project_of, projects_named

__all__ = ["Project", "is_path", "matching_projects", "project_at", "project_name", "project_of", "projects_named"]
