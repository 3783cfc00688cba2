"""Measures the streaming scrubber in MB/s on prose, prose full of `<`, and hostile tags, as a Markdown table.

    .venv/bin/python benchmarks/scrubber.py [--size CHARACTERS]

Every figure is the best of three runs over the same text, fed in chunks of 1, 20 and 200 characters; a token of a
model is about four characters long, so a stream of 100 tokens per second needs 0.0004 MB/s.
"""

import argparse
import platform
import time
from collections.abc import Sequence

from memoranda.safety.fence_tags import StreamingContextScrubber

CHUNKS = (1, 20, 200)
RUNS = 3
PARAGRAPH = (
    "The nightly import keeps thirty days of history in PostgreSQL and retries five times before it gives up. Its slow "
    "suite takes twelve minutes, so `make test` leaves it out (see the notes on release 4). Changes are reviewed in "
    "two hours; dates are written in UTC, and the mobile client reads them as local time."
)


def texts() -> dict[str, str]:
    """Return a piece of each kind of text, to be repeated."""
    prose = f"{PARAGRAPH}\n\n"
    return {
        "plain prose": prose,
        "prose with many `<`": prose.replace(" ", " < "),
        "prose with a fence in each paragraph": prose.replace(
            "\n\n", "\n\n<memory-context>\nsecret\n</memory-context>\n"
        ),
        "mentions in sentences": "The tag <memory-context> is special, and so on and on. ",
        "hostile: openers": "<memory-context>",
        "hostile: unfinished openers": "<memory-context " + "a" * 199,
        "hostile: openers in code": "x `<memory-context> ",
    }


def megabytes_per_second(chunks: Sequence[str]) -> float:
    """Return how many megabytes of UTF-8 per second are scrubbed in a stream of these chunks."""
    size = len("".join(chunks).encode())
    best = float("inf")
    for _ in range(RUNS):
        stream = StreamingContextScrubber()
        start = time.perf_counter()
        for chunk in chunks:
            stream.feed(chunk)
        stream.flush()
        best = min(best, time.perf_counter() - start)
    return size / best / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=300_000, help="characters of each text (default: 300000)")
    size = parser.parse_args().size
    print(f"Python {platform.python_version()}, {size:,} characters of each text, MB/s\n")
    print("| text | " + " | ".join(f"chunks of {chunk}" for chunk in CHUNKS) + " |")
    print("|---|" + "---:|" * len(CHUNKS))
    for name, piece in texts().items():
        text = (piece * (size // len(piece) + 1))[:size]
        cells = []
        for length in CHUNKS:
            chunks = [text[index : index + length] for index in range(0, size, length)]
            cells.append(f"{megabytes_per_second(chunks):.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
