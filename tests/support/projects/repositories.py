"""Real repositories, made by git itself."""

import os
import subprocess
from pathlib import Path

_SOMEBODY = {
    "GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "ana@example.org", "GIT_COMMITTER_NAME": "Ana",
    "GIT_COMMITTER_EMAIL": "ana@example.org", "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


def git(directory: Path, *words: str) -> str:
    """What git says in a directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _SOMEBODY
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *words],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_repository(directory: Path, *commits: str, origin: str | None = None) -> Path:
    """A repository with so many commits, published at an address or nowhere."""
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet")
    for text in commits:
        commit(directory, text)
    if origin is not None:
        git(directory, "remote", "add", "origin", origin)
    return directory


def commit(directory: Path, text: str) -> None:
    git(directory, "commit", "--quiet", "--allow-empty", "-m", text)


def first_commit(directory: Path) -> str:
    return git(directory, "rev-list", "--max-parents=0", "--first-parent", "HEAD")[:12]
