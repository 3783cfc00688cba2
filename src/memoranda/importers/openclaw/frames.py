"""Longer events of OpenClaw, which it packs by now, each in a frame of its own."""

from collections.abc import Callable
from functools import cache

from memoranda.importers.zstandard import is_own, unpacker

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
