"""Projects: a repository is the same one in every clone and worktree, wherever they are; else a directory is one.

A project is written `github.com/owner/name#3f2a9c81d0e4`: where it is published, and the beginning of its first commit.
Either may be missing. A repository that is published nowhere has the name of its directory first, which is for people;
a shallow clone has no commit. Two projects are the same when they agree on either: a fork, a project that moved, and
one that was not published yet when it was first worked on all stay one project.

A directory outside of any repository is written as its absolute path, `/home/ana/notes`. It includes the directories
below it. A repository without a commit and without a remote is written so too: it can be told from others only by where
it is. Both may get a name later, so a recorded path is looked up again whenever a project is asked for.

Addresses of one repository over SSH, HTTPS, with a port, a user or a token all get the same name, which contains no
user, token or port. An address on the same disk is not a name: it means nothing on another machine.

`project_of` asks git once per repository, and again after the repository changed.
"""

import logging
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

COMMIT = 12
_SIGN = "#"
_SCHEMES = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https", "git+http", "ftp", "ftps"})
# user@host:path, as git and scp write it; a single letter is a drive, two colons name a remote helper.
_SCP_ADDRESS = compile_later(r"(?:[^@/\s]+@)?(\[[0-9a-fA-F:.]+\]|[^:/@\s\[\]]{2,}):(?!:|//)(.+)")
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
_ABSOLUTE_PATH = compile_later(r"/|[A-Za-z]:/")


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


_log = logging.getLogger(__name__)

_GIT_TIMEOUT = 3.0
# A repository may be hostile: git must start nothing that its configuration names, and fetch nothing.
_GIT_OPTIONS = ("-c", "core.fsmonitor=false", "--no-replace-objects", "--no-pager")
_GIT_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_MAX_LEVELS = 64
_MAX_CACHED = 1_000
_POINTER = "gitdir:"
_MAX_POINTER_BYTES = 4_096
_MAX_PATH_CHARS = 1_000
# Home directories, of other machines too, and what contains them: what is below them is not one project.
_NO_PROJECT = compile_later(r"/|/root|/(?:home|Users)(?:/[^/]+)?|[A-Za-z]:/?(?:Users(?:/[^/]+)?)?")
# These change when a repository gets another remote, its first commit, or its older commits.
_WATCHED = ("config", "HEAD", "shallow", "packed-refs", "refs/heads")


class Repository(NamedTuple):
    """A repository: the top directory of one worktree, and the git directory that all worktrees share."""

    top: Path
    shared: Path


_cache: dict[tuple[object, ...], str | None] = {}


def project_of(directory: str | Path) -> str | None:
    """Return the project of a directory as sessions store it: its repository, else its path.

    A deleted directory counts as part of the repository that contained it. None for a home directory and the
    directories above it, for a repository that git cannot read, and for what is not an absolute path here.
    """
    if not os.path.isabs(directory):
        # Possibly a path of another machine.
        return None
    try:
        path = Path(os.path.realpath(directory))
        top = _top_directory(path)
        return _plain_directory(path) if top is None else _repository_project(top)
    except (OSError, ValueError):
        # Not a valid path, or no permission.
        return None


def projects_named(known: Iterable[str], wanted: str) -> frozenset[str]:
    """Return the known projects that a name, an address or a directory means.

    A directory counts as the repository that it belongs to today: sessions from before `git init` stay with it.
    """
    today = {text: (project_of(text) or text) if is_path(text) else text for text in known}
    matches = matching_projects({*today, *today.values()}, project_of(wanted) or wanted)
    return frozenset(text for text, project in today.items() if text in matches or project in matches)


def _plain_directory(path: Path) -> str | None:
    text = path.as_posix()
    is_home = Path(os.path.realpath(os.path.expanduser("~"))).is_relative_to(path) or _NO_PROJECT.fullmatch(text)
    return None if is_home or len(text) > _MAX_PATH_CHARS or not text.isprintable() else text


def _top_directory(path: Path) -> Path | None:
    """Return the nearest directory with an entry for git; None outside of any repository."""
    return next((parent for parent in [path, *path.parents][:_MAX_LEVELS] if os.path.lexists(parent / ".git")), None)


def _repository_project(top: Path) -> str | None:
    shared = _shared_directory(top / ".git")
    if shared is None:
        return None
    state = (shared, *(_modified_at(shared / name) for name in _WATCHED))
    if state not in _cache:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        repository = Repository(top, shared)
        _cache[state] = _identify(repository) or (_plain_directory(top) if _is_new(shared) else None)
    return _cache[state]


def _is_new(shared: Path) -> bool:
    """Whether a repository is readable and has no branch yet, so that git has nothing to identify it by."""
    head = shared / "HEAD"
    if not head.is_file() or not _read_line(head).startswith("ref: refs/heads/"):
        return False
    return (
        (shared / "refs" / "heads").is_dir()
        and not any((shared / "refs" / "heads").iterdir())
        and (not _modified_at(shared / "packed-refs"))
    )


def _shared_directory(entry: Path) -> Path | None:
    """Return the directory with the commits; worktrees and submodules only point to it."""
    if not entry.is_dir():
        pointer = _read_line(entry)
        if not pointer.startswith(_POINTER):
            return None
        entry = entry.parent / pointer.removeprefix(_POINTER).strip()
    if (entry / "commondir").is_file():
        entry = entry / _read_line(entry / "commondir")
    return Path(os.path.realpath(entry)) if entry.is_dir() else None


def _read_line(file: Path) -> str:
    return os.fsdecode(read_file(file, _MAX_POINTER_BYTES)).strip()


def _modified_at(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _identify(repository: Repository) -> str | None:
    published = _published_name(repository.top)
    commit = _first_commit(repository)
    if published is None and not commit:
        return None
    return str(Project(published or _directory_name(repository.shared), commit))


def _published_name(top: Path) -> str | None:
    """Return the name of origin, else of the first other remote that means something on other machines."""
    output = ask_git(top, "config", "--null", "--get-regexp", r"^remote\..*\.url$") or ""
    addresses: dict[str, str] = {}
    for entry in output.split("\0"):
        key, _, address = entry.partition("\n")
        name = key.removeprefix("remote.").removesuffix(".url")
        if name and address:
            addresses.setdefault(name, address)
    for name in sorted(addresses, key=lambda name: (name != "origin", name)):
        if found := _address_name(top, name, addresses[name]):
            return found
    return None


def _address_name(top: Path, remote: str, address: str) -> str | None:
    found = remote_name(address)
    if found is not None and "." not in found.partition("/")[0] and not remote.startswith("-"):
        # An alias that the git configuration of the user expands.
        spelled = ask_git(top, "ls-remote", "--get-url", remote) or ""
        return remote_name(spelled) or found
    return found


def _first_commit(repository: Repository) -> str:
    """Return the first commit of the first-parent line, so that later merges do not change it."""
    if _modified_at(repository.shared / "shallow"):
        # A shallow clone does not have the first commit.
        return ""
    commits = (ask_git(repository.top, "rev-list", "--first-parent", "--max-parents=0", "HEAD") or "").split()
    return commits[-1][:COMMIT] if commits else ""


def _directory_name(shared: Path) -> str:
    name = shared.parent.name if shared.name.startswith(".") else shared.name.removesuffix(".git")
    return re.sub(r"[^\w.-]", "-", name)[:100] or "repository"


def ask_git(directory: Path, *arguments: str, timeout: float = _GIT_TIMEOUT) -> str | None:
    """Return the output of git; None when it is not installed, fails, or does not finish in time."""
    # Most commands never ask git, so they need not load these.
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    program = shutil.which("git")
    if program is None:
        return None
    # Inside a git hook, the inherited environment would name another repository.
    environment = None if sys.platform == "win32" else {**_GIT_ENVIRONMENT, "HOME": os.path.expanduser("~")}
    try:
        result = subprocess.run(
            [program, *_GIT_OPTIONS, "-C", str(directory), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=timeout, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        _log.debug("git could not be asked about %s: %s", directory, error)
        return None
    if result.returncode != 0:
        return None
    return result.stdout.decode("utf-8", "replace")
