"""The log of a database stays small, however much is written."""

from pathlib import Path

from memoranda.sessions.store import open_store


def test_the_log_does_not_grow_with_what_one_process_writes(tmp_path: Path) -> None:
    """It is copied back and restarted while writing continues."""
    with open_store(tmp_path / "state.db") as store:
        store.sessions.create_session("s", "cli")
        largest = 0
        for number in range(6_000):
            store.messages.append_message("s", "user", f"message {number} " + "word " * 100)
            if number % 100 == 0:
                largest = max(largest, (tmp_path / "state.db-wal").stat().st_size)
    # Every append logs about five pages of 8 KB: all together they are more than 240 MB.
    assert largest < 120_000_000
