"""Zstandard, which programs pack long texts with; Python has it from 3.14, before that by the extra `zstd`."""

from importlib import import_module
from typing import Any

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
