"""Rollouts that Codex has compressed with Zstandard, which Python cannot unpack by itself before 3.14."""

import io
from collections.abc import Iterator
from importlib import import_module
from typing import Any, BinaryIO

from memoranda.importers.finding import open_source
from memoranda.importers.lines import Line, lines_in
from memoranda.importers.shape import Item, Problem

_HELP = "it is compressed: install the Python package zstandard, or unpack it with `zstd -d`, and import again"


def compressed_lines(item: Item) -> Iterator[Line | Problem]:
    """Every line of a compressed file, if there is something on this machine that can unpack it."""
    library = _library()
    if library is None:
        yield Problem(item.file, None, _HELP, unread=True)
        return
    try:
        with open_source(item.file) as stream:
            yield from lines_in(item.file, _unpacked(library, stream))
    except OSError as error:
        yield Problem(item.file, None, f"cannot be read: {error.strerror or error}", unread=True)
    except library.ZstdError as error:
        yield Problem(item.file, None, f"the rest of it cannot be unpacked: {error}")


def _library() -> Any:
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def _unpacked(library: Any, stream: BinaryIO) -> BinaryIO:
    if hasattr(library, "ZstdFile"):
        return io.BufferedReader(library.ZstdFile(stream))
    return io.BufferedReader(library.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
