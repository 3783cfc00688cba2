"""Lets a fork wait until no other thread is loading a module for this package.

Python locks a module while it is loaded. In the child of a fork the thread that loads it does not exist, and the
next import of the module would wait for ever.
"""

import logging
import os
import sys
import threading
import time
from types import FrameType

# What is registered last prepares for a fork first. `logging` locks itself then, and a module that is being loaded asks
# for a logger, so `logging` must have been loaded before this function is registered.
_log = logging.getLogger(__name__)

_TIMEOUT = 10.0
_PAUSE = 0.001
_IMPORT_SYSTEM = "<frozen importlib"
_PACKAGE = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"


def wait_for_imports() -> None:
    """Wait for the other threads, at most until the timeout. Call it before a fork."""
    deadline = time.monotonic() + _TIMEOUT
    this_thread = threading.get_ident()
    while any(_is_importing(frame) for thread, frame in sys._current_frames().items() if thread != this_thread):
        if time.monotonic() > deadline:
            _log.warning("A thread is still loading a module, which a process that is forked now cannot load.")
            return
        time.sleep(_PAUSE)


def _is_importing(newest: FrameType) -> bool:
    """Whether a thread is in an import that code of this package has begun."""
    frame: FrameType | None = newest
    importing = False
    while frame is not None:
        path = frame.f_code.co_filename
        importing = importing or path.startswith(_IMPORT_SYSTEM)
        if importing and path.startswith(_PACKAGE):
            return True
        frame = frame.f_back
    return False
