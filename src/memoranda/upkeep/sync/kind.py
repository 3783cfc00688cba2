"""The kinds of things that travel, and the one rule by which the states of two machines merge."""

from typing import Any, Protocol

from memoranda.memory.record.transfer.row_versions import Row
from memoranda.upkeep.sync.forgotten_texts import has_forgotten
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.stamps import digest_of

OF_ENTRIES = "entry facts"
"""The kind of what is known about entries: it is in no log."""
State = Any
"""The state of a thing as JSON; None if it was removed."""


class Kind(Protocol):
    """One kind of thing."""

    name: str
    noun: str
    """How reports count them; empty if they do not."""

    def read(self, run: Run) -> dict[str, State]:
        """Return the states of all things of this home, by name."""

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        """Give a thing a state; returns why that is not possible, or an empty text."""

    def digest(self, state: State) -> str:
        """Return a digest of what all machines agree on."""
        return digest_of(state)

    def changed(self, run: Run, before: Row | None, state: State) -> Row:
        """Return the row of a thing that was changed here."""
        return run.changed_row(before, self.digest(state))

    def was_forgotten(self, run: Run, before: Row) -> bool:
        """Return whether a thing that is gone was forgotten, and not only removed."""
        return run.versions.value("rewrite") == str(run.number)

    @staticmethod
    def check(name: str, state: State) -> None:
        """Raise ValueError if a received state cannot be used."""


def merge_state(
    run: Run, kind: str, name: str, ours: tuple[Row | None, Any], theirs: tuple[Row, Any]
) -> tuple[bool, Row]:
    """Return whether their state replaces ours, and the row of the one that stays.

    What one of two machines has changed without knowledge of the other is noted in the log.
    """
    (our_row, our_state), (their_row, their_state) = ours, theirs
    if our_row is None:
        return True, their_row
    if our_row.digest == their_row.digest:
        return False, max(our_row, their_row)
    is_later = their_row.stamp > our_row.stamp
    wins, later = is_later, max(our_row, their_row)
    is_same = kind == OF_ENTRIES or (kind == "entry" and _text_of(our_state) == _text_of(their_state))
    if is_same and is_untrusted(our_state) != is_untrusted(their_state):
        # What a person said is theirs, whatever untrusted text says as well.
        wins = is_untrusted(our_state)
    if has_forgotten(our_state, their_state):
        wins = True
    elif has_forgotten(their_state, our_state):
        wins = False
    if wins != is_later:
        # All machines must get what wins, although it is not the later one.
        row = their_row if wins else our_row
        return wins, row._replace(stamp=run.clock.change(later.stamp), base=later.stamp, run=run.number)
    winner, loser = (their_row, our_row) if wins else (our_row, their_row)
    if winner.base < loser.stamp and not is_same:
        won, lost = (their_state, our_state) if wins else (our_state, their_state)
        run.log_replaced(kind, name, differences(lost, won), loser.stamp, undecided=_asks(kind, lost, won))
    return wins, winner


def is_untrusted(state: State) -> bool:
    """Return whether untrusted text may have suggested an entry, given its state or its facts."""
    return isinstance(state, dict) and bool(state.get("sources"))


def _text_of(state: State) -> str | None:
    return (state or {}).get("text")


def differences(lost: Any, won: Any) -> Any:
    """Return what a state had that the one that replaced it does not have."""
    if not isinstance(lost, dict) or not isinstance(won, dict):
        return lost
    return {name: value for name, value in lost.items() if value != won.get(name) and value not in (None, 0)}


def _asks(kind: str, lost: Any, won: Any) -> bool:
    return kind == "entry" and _text_of(lost) != _text_of(won)
