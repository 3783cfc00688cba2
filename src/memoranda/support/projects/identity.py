"""Names projects, and decides which names mean the same one.

A project is written `github.com/owner/name#3f2a9c81d0e4`: where it is published, and the beginning of its first commit.
Either may be missing. A repository that is published nowhere has the name of its directory first, which is for people;
a shallow clone has no commit. Two projects are the same when they agree on either: a fork, a project that moved, and
one that was not published yet when it was first worked on all stay one project.

A directory outside of any repository is written as its absolute path, `/home/ana/notes`. It includes the directories
below it.

Addresses of one repository over SSH, HTTPS, with a port, a user or a token all get the same name, which contains no
user, token or port. An address on the same disk is not a name: it means nothing on another machine.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

COMMIT = 12
_SIGN = "#"
_SCHEMES = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https", "git+http", "ftp", "ftps"})
# user@host:path, as git and scp write it; a single letter is a drive, two colons name a remote helper.
_SCP_ADDRESS = re.compile(r"(?:[^@/\s]+@)?(\[[0-9a-fA-F:.]+\]|[^:/@\s\[\]]{2,}):(?!:|//)(.+)")
# Other host names of the same servers, for SSH through a firewall.
_ALIASES = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
    "vs-ssh.visualstudio.com": "dev.azure.com",
}
_AZURE, _OLD_AZURE = "dev.azure.com", ".visualstudio.com"
_MAX_NAME_CHARS = 200
_ABSOLUTE_PATH = re.compile(r"/|[A-Za-z]:/")


@dataclass(frozen=True, slots=True)
class Project:
    """A repository (where it is published, or its directory's name; its first commit), or the path of a directory."""

    name: str
    first_commit: str = ""

    def __str__(self) -> str:
        return f"{self.name}{_SIGN}{self.first_commit}" if self.first_commit else self.name

    @property
    def published(self) -> str:
        """Where it is published; "" for one that is only known by its directory's name or path."""
        return self.name if "/" in self.name and not is_path(self.name) else ""

    def is_same(self, other: "Project") -> bool:
        """Whether two are clones, forks or earlier states of one repository."""
        return bool(self.published and self.published == other.published) or bool(
            self.first_commit and self.first_commit == other.first_commit
        )

    def contains(self, other: "Project") -> bool:
        """Whether the other is this directory or one below it; False for repositories."""
        return is_path(self.name) and f"{other.name}/".startswith(f"{self.name}/")


def is_path(text: str) -> bool:
    """Whether a project as sessions store it is a directory, not a repository."""
    return _ABSOLUTE_PATH.match(text) is not None


def project_at(address: str) -> str | None:
    """Return the project published at an address, without its first commit; None for a local address."""
    return remote_name(address)


def read_project(text: str) -> Project:
    """Parse a project as sessions store it."""
    if is_path(text):
        return Project(text.rstrip("/"))
    name, _, commit = text.partition(_SIGN)
    return Project(name, commit)


def project_name(text: str | None) -> str:
    """Return the project without its first commit, for people; "" for None."""
    return read_project(text or "").name


def matching_projects(known: Iterable[str], wanted: str) -> frozenset[str]:
    """Return the known projects that a project, an address, `owner/name`, a name or a directory can mean."""
    projects = {text: read_project(text) for text in known}
    asked = _parse_wanted(wanted)
    matches = [
        project
        for project in projects.values()
        if asked.is_same(project) or asked.contains(project) or _is_named(project, asked)
    ]
    return frozenset(
        text
        for text, project in projects.items()
        if any(project == match or project.is_same(match) or match.contains(project) for match in matches)
    )


def _parse_wanted(wanted: str) -> Project:
    text = wanted.strip()
    if is_path(text):
        return read_project(text)
    return Project(remote_name(text) or "") if remote_name(text) else read_project(text.lower())


def _is_named(project: Project, asked: Project) -> bool:
    """Whether a project has the wanted name; a wanted project with its first commit must match exactly."""
    if asked.first_commit or not asked.name or is_path(asked.name):
        return False
    wanted = asked.name.strip("/").removesuffix(".git")
    name = project.name.lower()
    return name == wanted or name.endswith(f"/{wanted}")


def remote_name(address: str) -> str | None:
    """Return the name of the repository at an address; None when the address is local."""
    found = _host_and_path(address.strip())
    if found is None:
        return None
    host, path = found
    steps = [step for step in _normalize(path).split("/") if step not in ("", ".")]
    if ".." in steps:
        return None
    host, steps = _on_known_servers(host.removeprefix("www."), steps)
    if steps:
        steps[-1] = steps[-1].removesuffix(".git")
    name = "/".join([host, *(step for step in steps if step)])
    return name if steps and len(name) <= _MAX_NAME_CHARS and "/" in name else None


def _host_and_path(address: str) -> tuple[str, str] | None:
    """Split an address into host and path."""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host = parts.hostname
        except ValueError:
            # Not an address, such as one with an unclosed bracket.
            return None
        return (_normalize(host), parts.path) if parts.scheme.lower() in _SCHEMES and host else None
    short = _SCP_ADDRESS.fullmatch(address)
    return (_normalize(short[1].strip("[]")), short[2]) if short else None


def _normalize(text: str) -> str:
    """Lower-case and unescape; replace characters that would split a line or a name."""
    return re.sub(r"[^\w.~/+:-]", "-", unquote(text, errors="replace")).lower()


def _on_known_servers(host: str, steps: list[str]) -> tuple[str, list[str]]:
    """Unify what known servers write differently over SSH and HTTPS."""
    host = _ALIASES.get(host, host)
    if host.endswith(_OLD_AZURE):
        owner = host.removesuffix(_OLD_AZURE)
        host, steps = _AZURE, [owner, *(step for step in steps if step != "defaultcollection")]
    if host == _AZURE:
        steps = steps[1:] if steps[:1] == ["v3"] else steps
        if len(steps) == 3 and steps[1] == "_git":
            # A project whose only repository has its name.
            steps = [steps[0], steps[2], steps[2]]
        steps = [step for step in steps if step != "_git"]
    elif steps[:1] == ["scm"] and len(steps) > 2:
        steps = steps[1:]
    return host, steps
