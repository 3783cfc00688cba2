"""Rollouts that Codex has compressed, read like any other file of lines."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from memoranda.importers.lines import Line, lines_in, unreadable
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import open_source
from memoranda.importers.zstandard import LACKING, is_own, unpacker

_HELP = f"{LACKING}, or unpack it with `zstd -d`, and import again"


def compressed_lines(item: ImportItem) -> Iterator[Line | Problem]:
    """Every line of a compressed file, if there is something on this machine that can unpack it."""
    library = unpacker()
    if library is None:
        yield Problem(item.file, None, _HELP, unread=True)
        return
    try:
        with open_source(item.file) as stream:
            yield from lines_in(item.file, _unpacked(library, stream))
    except OSError as error:
        yield unreadable(item, error)
    except library.ZstdError as error:
        yield Problem(item.file, None, f"the rest of it cannot be unpacked: {error}")


def _unpacked(library: Any, stream: BinaryIO) -> BinaryIO:
    if is_own(library):
        return io.BufferedReader(library.ZstdFile(stream))
    return io.BufferedReader(library.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
