"""Files that are read as a whole, most of them one JSON value each: what is wrong with one is said, never raised."""

import json
from typing import Any

from memoranda.importers.lines import LONGEST_LINE, unreadable
from memoranda.importers.reader_protocol import ImportItem, Problem
from memoranda.importers.source_files import open_source


def content(item: ImportItem) -> bytes | Problem:
    """What a file holds, or the problem with it; a file larger than the longest line is one."""
    try:
        with open_source(item.file) as stream:
            raw = stream.read(LONGEST_LINE + 1)
    except OSError as error:
        return unreadable(item, error)
    if len(raw) > LONGEST_LINE:
        return Problem(item.file, None, f"the file has more than {LONGEST_LINE // 1024 // 1024} MB")
    return raw


def document(item: ImportItem) -> Any:
    """The value that a file holds as JSON, or the problem with it."""
    raw = content(item)
    try:
        return raw if isinstance(raw, Problem) else json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        return Problem(item.file, None, f"not JSON ({str(error)[:100]})")
