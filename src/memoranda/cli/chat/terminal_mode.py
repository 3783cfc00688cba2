"""The mode of the terminal during a chat: keys are shown where they are read, and pasted text is marked as pasted.

Outside of the line editor a terminal shows every key at once, wherever the cursor is, and the editor shows it again.
So the chat switches that off from its start until its end. Keys that are typed while the model answers wait for the
next prompt. Ctrl-C still interrupts.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import termios

_ERASE_LINE = "\r\x1b[K"
_MARK_PASTES, _STOP_MARKING = "\x1b[?2004h", "\x1b[?2004l"


@contextmanager
def chat_mode() -> Iterator[None]:
    """Sets the mode, and restores the earlier one at the end."""
    if sys.platform == "win32":
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = termios.tcgetattr(keyboard)
    # Without lines: a terminal in line mode loses what is longer than 4,096 bytes.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    # Ctrl-C stops the answer and does not discard what was typed or pasted before it.
    quiet[3] |= termios.NOFLSH
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        # Keys that were typed before are on this line, and will be shown by the editor.
        _send(_ERASE_LINE)
        mark_pastes()
        yield
    finally:
        _send(_STOP_MARKING)
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def mark_pastes() -> None:
    """Asks the terminal to mark pasted text; the line editor stops that whenever a line is complete."""
    if sys.platform != "win32":
        _send(_MARK_PASTES)


def _send(code: str) -> None:
    sys.stdout.write(code)
    sys.stdout.flush()
