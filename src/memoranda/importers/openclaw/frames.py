"""Zstandard, which OpenClaw packs longer events with by now; Python has it from 3.14, or by the package `zstandard`."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

LACKING = (
    "it is packed with Zstandard, which this Python cannot read; "
    "'pip install zstandard' (or Python 3.14) and import again"
)
_LARGEST = 64 * 1024 * 1024


def unpack(frame: bytes) -> bytes | None:
    """The content of a frame; None when nothing here can unpack it. Raises ValueError for a broken one."""
    unpacking = _unpacking()
    return None if unpacking is None else unpacking(frame)


@cache
def _unpacking() -> Callable[[bytes], bytes] | None:
    try:
        own = import_module("compression.zstd")
    except ImportError:
        own = None
    if own is not None:
        return _with(own.decompress, own.ZstdError)
    try:
        package = import_module("zstandard")
    except ImportError:
        return None
    unpacker = package.ZstdDecompressor()
    return _with(lambda frame: unpacker.decompress(frame, max_output_size=_LARGEST), package.ZstdError)


def _with(decompress: Callable[[bytes], bytes], failure: type[Exception]) -> Callable[[bytes], bytes]:
    def unpacked(frame: bytes) -> bytes:
        try:
            return decompress(frame)
        except failure as error:
            raise ValueError(f"a packed event is damaged ({error})") from error

    return unpacked
