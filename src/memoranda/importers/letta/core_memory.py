"""Proposals for curated memory from what every agent of Letta knows about its user and about itself."""

from collections.abc import Iterator

from memoranda.importers.reader_protocol import ImportedProposal, ReadEvent
from memoranda.memory.curated.settings import Target

PROGRAM = "letta"
_TARGETS: dict[str, Target] = {"human": "user", "persona": "memory"}


def propose(label: str, text: str, agent: str) -> Iterator[ReadEvent]:
    """Yield a proposal for the blocks that every agent has: who the user is, and who the agent is."""
    if label in _TARGETS:
        yield ImportedProposal(_TARGETS[label], text, f"block {label} of Letta agent {agent}")
