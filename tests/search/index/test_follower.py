"""The thread that follows the record: a pause in appends wakes it, and a steady load does not put it off."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.search.index.follower import Follower
from tests.timing import wait_until


@dataclass
class _Progress:
    complete: bool = True
    problem: str | None = None


@dataclass
class _Index:
    """An index that only notes when it was asked to catch up."""

    calls: list[float] = field(default_factory=list)

    def catch_up(self, *, limit: int | None = None) -> _Progress:
        self.calls.append(time.monotonic())
        return _Progress()

    def check(self) -> None: ...
    def needs_purge(self) -> bool:
        return False

    def purge(self) -> None: ...


# Long enough for a slow machine, and much shorter than a minute, for which a steady load once put indexing off.
_LIMIT = 30.0


@pytest.mark.slow
def test_a_steady_load_does_not_put_indexing_off() -> None:
    """Appends that never pause are indexed all the same."""
    index = _Index()
    follower = Follower(lambda: index)
    try:

        def is_called() -> bool:
            follower.nudge()
            return bool(index.calls)

        wait_until(is_called, _LIMIT, every=0.02)
    finally:
        follower.close()


def test_a_pause_is_used_at_once(tmp_path: Path) -> None:
    """After a single append everything is indexed without another nudge."""
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "plum cake")
        wait_until(lambda: db.index.state().complete, _LIMIT)
