"""Zstandard, which programs pack long texts with; Python has it from 3.14, before that by the extra `zstd`."""

import io
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import Line, lines_in, open_source, unreadable

LACKING = (
    "it is packed with Zstandard, which this Python cannot read: pip install 'memoranda[zstd]' (or use Python 3.14)"
)


def unpacker() -> Any:
    """The module that can unpack, Python's own or the package; None when there is neither."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def is_own(module: Any) -> bool:
    """Whether a module is the one that Python has of itself; the package has other names."""
    return hasattr(module, "ZstdFile")


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


_LARGEST = 64 * 1024 * 1024


def unpack(frame: bytes) -> bytes | None:
    """The content of a frame; None when nothing here can unpack it. Raises ValueError for a broken one."""
    unpacking = _unpacking()
    return None if unpacking is None else unpacking(frame)


@cache
def _unpacking() -> Callable[[bytes], bytes] | None:
    library = unpacker()
    if library is None:
        return None
    decompressor = None if is_own(library) else library.ZstdDecompressor()

    def unpacked(frame: bytes) -> bytes:
        try:
            if decompressor is None:
                content: bytes = library.decompress(frame)
            else:
                content = decompressor.decompress(frame, max_output_size=_LARGEST)
        except library.ZstdError as error:
            raise ValueError(f"a packed event is damaged ({error})") from error
        return content

    return unpacked
