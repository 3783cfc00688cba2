"""The mode of the terminal during a chat: the line editor alone shows keys, and the terminal marks pasted text.

Outside of the line editor a terminal shows every key at once, wherever the cursor is, and the editor shows it again.
So the chat turns that off from its start until its end. Keys that are typed while the model answers wait for the next
prompt. Ctrl-C still interrupts.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import termios

_ERASE_LINE = "\r\x1b[K"
_MARK_PASTES, _STOP_MARKING_PASTES = "\x1b[?2004h", "\x1b[?2004l"


@contextmanager
def chat_mode() -> Iterator[None]:
    """Sets the mode of the chat, and restores the previous mode at the end."""
    if sys.platform == "win32":
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = termios.tcgetattr(keyboard)
    # Not in line mode, in which a terminal loses whatever exceeds 4,096 bytes.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    # Ctrl-C stops the answer and does not discard what was typed or pasted before it.
    quiet[3] |= termios.NOFLSH
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        # This line shows the keys that were typed before, and the editor will show them again.
        _send(_ERASE_LINE)
        mark_pastes()
        yield
    finally:
        _send(_STOP_MARKING_PASTES)
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def mark_pastes() -> None:
    """Asks the terminal to mark pasted text; the line editor turns that off after each line."""
    if sys.platform != "win32":
        _send(_MARK_PASTES)


def _send(code: str) -> None:
    sys.stdout.write(code)
    sys.stdout.flush()
