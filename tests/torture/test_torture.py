"""The torture itself: a short run of each kind finds nothing, and a disk that loses what was synced is found out."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.forked import forking
from tests.storage.postgres.servers import newest_binaries
from tests.torture import curator_kills, home_kills, io_errors, kills, power_cuts, server_strikes
from tests.torture.counts import Counts
from tests.torture.home_parts import PARTS, new_home
from tests.torture.recorded_disk import RecordedDisk

needs_strace = pytest.mark.skipif(not io_errors.can_inject(), reason="strace is not installed, or may not trace")


@pytest.mark.slow
@forking
def test_kills_lose_nothing(tmp_path: Path) -> None:
    """Writers die after they have acknowledged something, and everything acknowledged is there."""
    assert kills.run(tmp_path, 8, seed=1).failures(8) == []


@pytest.mark.slow
@forking
def test_kills_in_every_part_of_a_home_lose_nothing(tmp_path: Path) -> None:
    """Writers of six parts and five operations over the whole home, each killed equally often."""
    newest_binaries()
    counts = home_kills.run(tmp_path, 1, seed=1)
    assert counts.failures(1) == []
    assert counts.remarks.keys() == {*PARTS, "sync", "forget", "backup", "restore", "migration"}
    assert len(set(counts.remarks.values())) == 1


def test_a_write_that_is_gone_is_found_out(tmp_path: Path) -> None:
    """So the test of kills in every part can fail."""
    current = home_kills.Round(new_home(tmp_path / "home"), None, Random(1))
    current.texts["items"].append("never stored")
    current.compare("now", parts=("record", "curated", "skills", "items"))
    assert current.faults == ["now: lost in items: never stored"]


@pytest.mark.slow
@needs_strace
def test_power_cuts_lose_nothing(tmp_path: Path) -> None:
    """At any moment the disk may hold less than the program wrote, but not less than it acknowledged."""
    assert power_cuts.run(tmp_path, 10, seed=1).failures(10) == []


@pytest.mark.slow
@needs_strace
def test_a_disk_that_forgets_what_was_synced_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test of power cuts can fail."""
    monkeypatch.setattr(RecordedDisk, "_sync", lambda disk, path: None)
    assert any("lost" in failure for failure in power_cuts.run(tmp_path, 10, seed=1).failures(10))


@pytest.mark.slow
@needs_strace
def test_failing_system_calls_lose_nothing(tmp_path: Path) -> None:
    """What was refused is not acknowledged, and what was acknowledged is there."""
    assert io_errors.run(tmp_path, 6, seed=1).failures(6) == []


@pytest.mark.slow
@forking
@pytest.mark.parametrize(
    ("strike", "wanted"),
    [
        (server_strikes.kill_clients, 4),
        (server_strikes.restart_server, 2),
        (server_strikes.end_backends, 4),
        (server_strikes.lose_packets, 4),
        (curator_kills.kill_editors, 4),
    ],
)
def test_a_record_on_a_server_loses_and_repeats_nothing(
    tmp_path: Path, strike: Callable[[Path, int, int], Counts], wanted: int
) -> None:
    """Clients are killed, the server crashes, connections end, answers get lost."""
    newest_binaries()
    assert strike(tmp_path, wanted, 1).failures(wanted) == []


def test_an_edit_without_an_answer_may_have_happened() -> None:
    """An acknowledged edit must be there; only the last one is unsure."""
    said = b'try ["a"]\nok\ntry ["a", "b"]\nrefused\ntry []\n'
    assert curator_kills.possible_entries(said) == [["a"], []]
    assert curator_kills.possible_entries(said + b"ok\n") == [[]]


def test_too_few_strikes_or_acknowledgements_prove_nothing() -> None:
    """A run in which nothing was at stake fails."""
    assert Counts("kills", strikes=5, acknowledged=9).failures(10) == ["kills: only 5 of 10 strikes"]
    assert Counts("kills", strikes=5, acknowledged=4).failures(5) == ["kills: only 4 acknowledged writes for 5 strikes"]
    assert Counts("kills", strikes=5, acknowledged=9).failures(5) == []
