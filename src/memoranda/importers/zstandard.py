"""Decompresses Zstandard, which programs use for long texts; Python before 3.14 needs the extra `zstd` for it."""

import io
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO

from memoranda.importers.reader_protocol import ImportItem, Problem, ReadError
from memoranda.importers.source_files import Line, open_source, stream_lines

MISSING_LIBRARY = (
    "it is compressed with Zstandard, which this Python cannot read: pip install 'memoranda[zstd]' (or use Python 3.14)"
)
_FILE_HELP = f"{MISSING_LIBRARY}, or decompress it with `zstd -d`, and import again"
_MAX_FRAME_BYTES = 64 * 1024 * 1024


def compressed_lines(item: ImportItem) -> Iterator[Line | Problem]:
    """Yield the lines of a compressed file; raises ReadError if no library can decompress it."""
    library = _load_library()
    if library is None:
        raise ReadError(Problem(item.file, None, _FILE_HELP, unread=True))
    try:
        with open_source(item.file) as stream:
            yield from stream_lines(item.file, _open_decompressed(library, stream))
    except library.ZstdError as error:
        yield Problem(item.file, None, f"the rest of it cannot be decompressed: {error}")


def unpack(frame: bytes) -> bytes | None:
    """Return the content of one frame; None without a library. Raises ValueError for a damaged or too large one."""
    library = _load_library()
    if library is None:
        return None
    try:
        # As a stream: the limits that the libraries offer are ignored if the frame itself names its size.
        content = _open_decompressed(library, io.BytesIO(frame)).read(_MAX_FRAME_BYTES + 1)
    except (library.ZstdError, EOFError) as error:
        raise ValueError(f"a compressed event is damaged ({error})") from error
    if len(content) > _MAX_FRAME_BYTES:
        raise ValueError(f"a compressed event is larger than {_MAX_FRAME_BYTES // 1024**2} MB")
    return content


@cache
def _load_library() -> Any:
    """Return Python's own module or the package; None when there is neither."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def _open_decompressed(library: Any, stream: BinaryIO) -> BinaryIO:
    # Python's own library has other names than the package.
    if hasattr(library, "ZstdFile"):
        return io.BufferedReader(library.ZstdFile(stream))
    return io.BufferedReader(library.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
