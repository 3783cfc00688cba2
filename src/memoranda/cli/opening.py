"""Opens the home that a command means; apart from `context`, so that commands which need no store load none."""

from memoranda.app import open_memory
from memoranda.cli.context import Invocation
from memoranda.curated.store import MemoryStore


def open_store(invocation: Invocation) -> MemoryStore:
    """The curated memory of the home, profile and user that were named."""
    return open_memory(invocation.home, profile=invocation.profile, user=invocation.user).curated
