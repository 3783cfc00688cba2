"""The first step of a hook: asks the helper of the home, and does the work itself when there is none.

`memoranda.__main__` calls `run_installed_hook` before anything else is loaded. A prompt that a helper answers loads
this module, the few that it imports, and nothing else.
"""

import os
import sys
import time

from memoranda.cli.hooks.process import CAPTURE, HELPER, parse_arguments
from memoranda.integrations.hooks.events import ANSWERED_EVENTS, EVENT_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memoranda.cli.hooks.process import HookOptions


def run_installed_hook(arguments: "Iterable[str]") -> None:
    """Runs an installed hook and ends the process; returns when the arguments are not those of one."""
    options = parse_arguments(arguments)
    if options is None:
        return
    if options.event == HELPER:
        from memoranda.cli.hooks.helper import run_helper  # noqa: PLC0415

        run_helper(options.home, options.profile)
    elif EVENT_NAMES.get(options.event, options.event) in ANSWERED_EVENTS and not options.wait:
        _answer(options)
    else:
        from memoranda.cli.hooks.call import run  # noqa: PLC0415

        if options.event != CAPTURE:
            _disable_garbage_collection()
        run(options)
    # All files are closed by now; an orderly shutdown of the interpreter would only cost time.
    os._exit(0)


def _answer(options: "HookOptions") -> None:
    from memoranda.cli.hooks.helper_protocol import ask_helper  # noqa: PLC0415
    from memoranda.cli.hooks.process import read_input, write_answer  # noqa: PLC0415

    started_at, deadline = time.time(), time.monotonic() + options.timeout
    payload = read_input(deadline)
    reply = None if payload is None else ask_helper(options, payload, started_at)
    if reply is not None and reply.text is not None:
        write_answer(reply.text)
        return
    _prefer_to_other_work()
    _disable_garbage_collection()
    from memoranda.cli.hooks.call import HookCall, run  # noqa: PLC0415

    call = HookCall(options, payload, started_at)
    if reply is None:
        call.log_late()
        return
    run(options, call, deadline)
    if not reply.is_running:
        call.start_helper()


def _disable_garbage_collection() -> None:
    # The process lives too briefly for garbage to matter, and loading modules makes none.
    import gc  # noqa: PLC0415

    gc.disable()


def _prefer_to_other_work() -> None:
    """Moves this process into a session of its own, so that what computes in the host's does not keep it from the CPU.

    Linux divides the CPU between sessions first, and then between the processes of each. Twenty compilers in the
    terminal of the host would leave a prompt a twentieth of its share. The hook ends by its own deadline.
    """
    if sys.platform == "linux":
        try:
            os.setsid()
        except PermissionError:
            # It leads a group already, because a shell has started it as a job.
            return
