"""`python -m memoranda` is the `memoranda` command. A hook of a host is answered before the rest is loaded."""

import atexit
import gc
import sys

_OBJECTS_BEFORE_COLLECTION = 20_000
# The exit code that shells use for an interrupted program.
_EXIT_INTERRUPTED = 130


def main() -> None:
    """Runs the command. An interrupt while it is loaded is not an error."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(_EXIT_INTERRUPTED)


def _run() -> None:
    if sys.argv[1:2] == ["hook"]:
        from memoranda.cli.hooks.entry import run_installed_hook  # noqa: PLC0415

        run_installed_hook(sys.argv[2:])
    # Loading modules makes many objects and no garbage, and the system frees those that are left at the end.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    atexit.register(gc.freeze)
    from memoranda.cli.main import main as run_command  # noqa: PLC0415

    run_command()


if __name__ == "__main__":
    main()
