"""What a project is called, and which names mean the same one.

A project is written `github.com/owner/name#3f2a9c81d0e4`: where it is published, and the beginning of its first commit.
Either may be missing. A repository that is published nowhere has the name of its directory in front, which is for
people; a clone without the old commits has nothing behind. Two are the same when they agree on either: a fork, a
project that moved, and one that was not published yet when it was first worked on all stay one project.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from memoranda.support.projects.remote_names import remote_name

COMMIT = 12
_SIGN = "#"


@dataclass(frozen=True, slots=True)
class Project:
    """A repository: its name (with a slash: where it is published) and the beginning of its first commit."""

    name: str
    first_commit: str = ""

    def __str__(self) -> str:
        return f"{self.name}{_SIGN}{self.first_commit}" if self.first_commit else self.name

    @property
    def published(self) -> str:
        """Where it is published; "" for one that is only known by its directory's name."""
        return self.name if "/" in self.name else ""

    def is_same(self, other: "Project") -> bool:
        """Whether two are clones, forks or earlier states of one repository."""
        return bool(self.published and self.published == other.published) or bool(
            self.first_commit and self.first_commit == other.first_commit
        )


def project_at(address: str) -> str | None:
    """The project that is published at an address, for those who know nothing else of it; None when it is local."""
    return remote_name(address)


def read_project(text: str) -> Project:
    """A project as it is written."""
    name, _, commit = text.partition(_SIGN)
    return Project(name, commit)


def project_name(text: str | None) -> str:
    """What people call a project: without its first commit; "" when there is none."""
    return read_project(text or "").name


def matching_projects(known: Iterable[str], wanted: str) -> frozenset[str]:
    """Those of the projects that somebody means by a project, an address, `owner/name` or just a name."""
    projects = {text: read_project(text) for text in known}
    asked = _asked(wanted)
    meant = [each for each in projects.values() if asked.is_same(each) or _is_called(each, asked)]
    return frozenset(text for text, each in projects.items() if any(each == one or each.is_same(one) for one in meant))


def _asked(wanted: str) -> Project:
    text = wanted.strip()
    return Project(remote_name(text) or "") if remote_name(text) else read_project(text.lower())


def _is_called(project: Project, asked: Project) -> bool:
    """Whether a name means a project; one with its first commit behind it is meant as it stands."""
    if asked.first_commit or not asked.name:
        return False
    wanted = asked.name.strip("/").removesuffix(".git")
    name = project.name.lower()
    return name == wanted or name.endswith(f"/{wanted}")
