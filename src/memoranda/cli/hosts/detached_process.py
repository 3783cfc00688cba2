"""Starts `memoranda hook …` in a process that the host neither waits for nor ends."""

import sys


def start_detached(arguments: list[str]) -> None:
    """Starts this command again, in a session of its own and without the host's standard streams."""
    command = [sys.executable, "-P", "-m", "memoranda", "hook", *arguments]
    import subprocess  # noqa: PLC0415

    options: dict[str, object] = {"start_new_session": True}
    if sys.platform == "win32":
        options = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    subprocess.Popen(  # type: ignore[call-overload]
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
