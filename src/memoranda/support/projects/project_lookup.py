"""Finds the project of a directory; asks git once per repository, and again after the repository changed.

A directory outside of any repository is a project under its own path. So is a repository without a commit and without
a remote: it can be told from others only by where it is. Both may become a repository later, so a recorded path is
looked up again whenever a project is asked for.
"""

import logging
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from memoranda.support.durable_files import read_file
from memoranda.support.projects.identity import COMMIT, Project, is_path, matching_projects, remote_name

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
_NO_PROJECT = re.compile(r"/|/root|/(?:home|Users)(?:/[^/]+)?|[A-Za-z]:/?(?:Users(?:/[^/]+)?)?")
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
