"""The spool where the plugin of a host puts turns until they are in the record: `host-turns/<host>/` in the home."""

from pathlib import Path


def spool_directory(home: Path, host: str) -> Path:
    return home / "host-turns" / host


def waiting_turns(home: Path, host: str) -> list[Path]:
    """Returns the files of turns that are not recorded yet, the oldest first."""
    return sorted(spool_directory(home, host).glob("*.json"))
