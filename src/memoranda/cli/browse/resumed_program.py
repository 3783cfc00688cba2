"""Replaces this process with the program that resumes a conversation."""

import os
import subprocess
import sys
from typing import NoReturn


def run_in_place(command: str) -> NoReturn:
    """Run a command of `resume_command`, whose parts are quoted for a shell, in place of this process."""
    if sys.platform == "win32":
        sys.exit(subprocess.call(command, shell=True))
    sys.stdout.flush()
    os.execl("/bin/sh", "sh", "-c", command)
