"""Standard input and output of a hook, as a host uses them."""

import os
import sys
import time

_CHUNK = 1 << 16
# A host's payload is far smaller; reading stops here, and whatever is cut off makes it no payload.
_MAX_BYTES = 16 * 1024 * 1024 + 1


def read_input(deadline: float) -> bytes | None:
    """Reads the whole payload; None when the host did not end it in time. A terminal or nothing at all is empty."""
    from select import select  # noqa: PLC0415

    found: list[bytes] = []
    size = 0
    try:
        if os.isatty(0):
            return b""
        while size < _MAX_BYTES:
            if not select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            chunk = os.read(0, _CHUNK)
            if not chunk:
                break
            found.append(chunk)
            size += len(chunk)
    except OSError:
        # The host closed its end, or gave no standard input.
        return b""
    return b"".join(found)


def write_answer(answer: bytes) -> None:
    """Writes an answer and ends the process when the host does not take it."""
    try:
        if answer:
            # Bytes, because the terminal's encoding is not that of the host.
            stream = getattr(sys.stdout, "buffer", None)
            if stream is None:
                sys.stdout.write(answer.decode("utf-8", "replace") + "\n")
            else:
                stream.write(answer + b"\n")
        sys.stdout.flush()
    except OSError:
        # The host closed its end. Exiting at once keeps Python from reporting that while it shuts down.
        os._exit(0)
