"""Files that are one JSON value each, read as a whole: what is wrong with one is said, never raised."""

import json
from typing import Any

from memoranda.importers.finding import open_source
from memoranda.importers.lines import LONGEST_LINE
from memoranda.importers.shape import Item, Problem


def document(item: Item) -> Any:
    """The value that a file holds, or the problem with it; a file larger than the longest line is one."""
    too_large = Problem(item.file, None, f"the file has more than {LONGEST_LINE // 1024 // 1024} MB")
    try:
        with open_source(item.file) as stream:
            raw = stream.read(LONGEST_LINE + 1)
        return too_large if len(raw) > LONGEST_LINE else json.loads(raw.decode("utf-8", "surrogatepass"))
    except OSError as error:
        return Problem(item.file, None, f"cannot be read: {error.strerror or error}", unread=True)
    except (ValueError, RecursionError) as error:
        return Problem(item.file, None, f"not JSON ({str(error)[:100]})")
