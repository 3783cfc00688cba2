"""Finds the project of a directory; asks git once per repository, and again after the repository changed."""

import logging
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from memoranda.support.durable_files import read_file
from memoranda.support.projects.identity import COMMIT, Project, remote_name

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
# These change when a repository gets another remote, its first commit, or its older commits.
_WATCHED = ("config", "HEAD", "shallow", "packed-refs", "refs/heads")


class Repository(NamedTuple):
    """A repository: the top directory of one worktree, and the git directory that all worktrees share."""

    top: Path
    shared: Path


_cache: dict[tuple[object, ...], str | None] = {}


def project_of(directory: str | Path) -> str | None:
    """Return the project of a directory as sessions store it; None outside a repository that can be identified.

    A deleted directory counts as part of the repository that contained it. A repository without a commit and without
    a remote cannot be told from others yet.
    """
    try:
        found = _repository(directory)
        if found is None:
            return None
        state = (found.shared, *(_modified_at(found.shared / name) for name in _WATCHED))
    except (OSError, ValueError):
        # Not a valid path, or no permission.
        return None
    if state not in _cache:
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[state] = _identify(found)
    return _cache[state]


def _repository(directory: str | Path) -> Repository | None:
    if not os.path.isabs(directory):
        # Possibly a path of another machine.
        return None
    path = Path(os.path.realpath(directory))
    for parent in [path, *path.parents][:_MAX_LEVELS]:
        if os.path.lexists(parent / ".git"):
            shared = _shared_directory(parent / ".git")
            return Repository(parent, shared) if shared is not None else None
    return None


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
    environment = None if sys.platform == "win32" else {**_GIT_ENVIRONMENT, "HOME": str(Path.home())}
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
