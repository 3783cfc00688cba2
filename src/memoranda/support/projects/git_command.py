"""Asks git about a repository: quickly, from the repository on the disk alone, and whatever happens as a value."""

import logging
import sys
from pathlib import Path

_log = logging.getLogger(__name__)

_LONGEST = 3.0
# A repository may come from anybody: nothing that its configuration names is started, and nothing is fetched.
_OPTIONS = ("-c", "core.fsmonitor=false", "--no-replace-objects", "--no-pager")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def ask_git(directory: Path, *question: str, longest: float = _LONGEST) -> str | None:
    """What git answers; None when it is not installed, has no answer, refuses the repository or takes too long."""
    # Most commands never ask, and need not load this.
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    program = shutil.which("git")
    if program is None:
        return None
    # An environment of its own: inside a hook of git's, the present one names another repository.
    environment = None if sys.platform == "win32" else {**_ENVIRONMENT, "HOME": str(Path.home())}
    try:
        answer = subprocess.run(
            [program, *_OPTIONS, "-C", str(directory), *question],
            stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=longest, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        _log.debug("git could not be asked about %s: %s", directory, error)
        return None
    if answer.returncode != 0:
        return None
    return answer.stdout.decode("utf-8", "replace")
