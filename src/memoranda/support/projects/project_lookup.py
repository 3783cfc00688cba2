"""From a directory to its project, with git asked once per repository and state of it."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from memoranda.support.durable_files import read_file
from memoranda.support.projects.git_command import ask_git
from memoranda.support.projects.identity import COMMIT, Project
from memoranda.support.projects.remote_names import remote_name

_MOST_LEVELS = 64
_MOST_REMEMBERED = 1_000
_POINTER = "gitdir:"
_LONGEST_POINTER = 4_096
# What changes when a repository gets another address, its first commit, or its old ones.
_TELLING = ("config", "HEAD", "shallow", "packed-refs", "refs/heads")


class Repository(NamedTuple):
    """Where a directory of it lies, and what all its worktrees share."""

    top: Path
    shared: Path


_known: dict[tuple[object, ...], str | None] = {}


def project_of(directory: str | Path) -> str | None:
    """The project of a directory, as it is kept with a session; None when it is in no repository that can be known.

    A directory that is gone counts as part of the repository that it lay in. A repository without a commit and without
    an address cannot be told from others yet.
    """
    try:
        found = _repository(directory)
        if found is None:
            return None
        state = (found.shared, *(_changed(found.shared / name) for name in _TELLING))
    except (OSError, ValueError):
        # A path that cannot be one, or that we may not look at.
        return None
    if state not in _known:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        _known[state] = _identify(found)
    return _known[state]


def _repository(directory: str | Path) -> Repository | None:
    if not os.path.isabs(directory):
        # The path of another machine, perhaps.
        return None
    path = Path(os.path.realpath(directory))
    for each in [path, *path.parents][:_MOST_LEVELS]:
        if os.path.lexists(each / ".git"):
            shared = _shared(each / ".git")
            return Repository(each, shared) if shared is not None else None
    return None


def _shared(entry: Path) -> Path | None:
    """The directory that holds the commits: a worktree and a submodule only point to theirs."""
    if not entry.is_dir():
        pointer = _line(entry)
        if not pointer.startswith(_POINTER):
            return None
        entry = entry.parent / pointer.removeprefix(_POINTER).strip()
    if (entry / "commondir").is_file():
        entry = entry / _line(entry / "commondir")
    return Path(os.path.realpath(entry)) if entry.is_dir() else None


def _line(file: Path) -> str:
    return os.fsdecode(read_file(file, _LONGEST_POINTER)).strip()


def _changed(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _identify(repository: Repository) -> str | None:
    published = _published(repository.top)
    commit = _first_commit(repository)
    if published is None and not commit:
        return None
    return str(Project(published or _directory_name(repository.shared), commit))


def _published(top: Path) -> str | None:
    """Where it is published: at origin, else at the first other address that means anything elsewhere."""
    listed = ask_git(top, "config", "--null", "--get-regexp", r"^remote\..*\.url$") or ""
    addresses: dict[str, str] = {}
    for entry in listed.split("\0"):
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
        # A short form that the user's configuration spells out.
        spelled = ask_git(top, "ls-remote", "--get-url", remote) or ""
        return remote_name(spelled) or found
    return found


def _first_commit(repository: Repository) -> str:
    """The beginning of the line that this work continues; what was merged into it later does not change it."""
    if _changed(repository.shared / "shallow"):
        # The commit at which a clone was cut off is not the first one.
        return ""
    said = (ask_git(repository.top, "rev-list", "--first-parent", "--max-parents=0", "HEAD") or "").split()
    return said[-1][:COMMIT] if said else ""


def _directory_name(shared: Path) -> str:
    name = shared.parent.name if shared.name.startswith(".") else shared.name.removesuffix(".git")
    return re.sub(r"[^\w.-]", "-", name)[:100] or "repository"
