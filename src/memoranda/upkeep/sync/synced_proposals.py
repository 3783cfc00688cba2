"""Proposals as things to synchronise: what awaits approval on one machine can be decided on any other.

A decision wins over a proposal that still waits: what was approved is an entry by now, and travels as one.
"""

from memoranda.memory.curated.approval_queue import ApprovalQueue
from memoranda.memory.curated.store import MemoryStore
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.things import State
from memoranda.upkeep.sync.versions import digest_of

_MAX_CHARS = 1_000_000


class Proposals:
    """The proposals of one memory, also the rejected ones, which can be restored."""

    name = "proposal"
    noun = "proposals"

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory
        self._queue: ApprovalQueue = memory.proposals

    def read(self, run: Run) -> dict[str, State]:
        return self._queue.read_texts()

    def write(self, run: Run, name: str, state: State) -> str:
        with self._memory.exclusive():
            self._queue.write_text(name, state)
        return ""

    def combine(self, earlier: State, later: State) -> State:
        if earlier is None or later is None:
            return None
        return earlier if earlier["rejected"] else later

    def digest(self, state: State) -> str:
        return digest_of(state)

    @staticmethod
    def check(name: str, state: State) -> None:
        if state is not None and not (
            isinstance(state["rejected"], bool) and isinstance(state["text"], str) and len(state["text"]) <= _MAX_CHARS
        ):
            raise ValueError("a proposal")
        ApprovalQueue.check_text(name, None if state is None else state["text"])
