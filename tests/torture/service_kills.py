"""Kills the HTTP service again and again while clients append with retries: `python -m tests.torture.service_kills`.

Arguments: how many messages (10,000), how many kills (20). Every message must be recorded exactly once.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.service.http.test_operation import append_through_kills


def main() -> None:
    count, kills = (int(text) for text in [*sys.argv[1:], *("10000", "20")[len(sys.argv) - 1 :]])
    started = time.monotonic()
    with TemporaryDirectory() as directory:
        texts = append_through_kills(Path(directory) / "home", count, kills)
    expected = sorted(f"message {number}" for number in range(count))
    assert sorted(texts) == expected, f"{len(texts)} rows, {len(set(texts))} different, {count} expected"
    print(f"{count} appends through {kills} kills: {len(texts)} rows, each once, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
