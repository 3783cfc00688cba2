"""The report of an import, kept in the home as JSON."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoranda.importers.summary import ImportSummary
from memoranda.support.durable_files import make_private_directory, write_private

DIRECTORY = "imports"
# So many reports are kept, the newest.
KEPT = 20
_NAMED = "[0-9]*-[0-9]*-[0-9]*.json"


def report_path(root: Path, began: float) -> Path:
    """Where the report of the import that began then is kept."""
    at = datetime.fromtimestamp(began, UTC)
    return root / DIRECTORY / f"{at:%Y%m%d-%H%M%S}-{os.getpid()}.json"


def report(tallies: Sequence[ImportSummary], began: float, ended: float) -> dict[str, Any]:
    """What an import did, as JSON-like values."""
    return {
        "began": _iso(began),
        "ended": _iso(ended),
        "seconds": round(ended - began, 3),
        "sources": [tally.as_json() for tally in tallies],
    }


def keep_report(path: Path, content: dict[str, Any]) -> None:
    """Write a report where its owner alone can read it, in the place of the oldest one when there are enough."""
    make_private_directory(path.parent)
    write_private(path, json.dumps(content, ensure_ascii=True, indent=2).encode() + b"\n")
    # By their names, which begin with the time; somebody else's files stay.
    newest_first = sorted((each for each in path.parent.glob(_NAMED) if each != path), reverse=True)
    for old in newest_first[KEPT - 1 :]:
        old.unlink(missing_ok=True)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
