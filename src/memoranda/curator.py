"""The rules of the curator that need no home, for programs that merge or date entries themselves.

`absolute_dates(text, written)` returns the text with the dates that it meant on the day it was written.
`missing_facts(originals, merged)` returns what a merged text lacks of its originals; an empty list when nothing.
"""

from memoranda.memory.curated.absolute_dates import absolute_dates
from memoranda.upkeep.curator.missing_facts import missing_facts

__all__ = ["absolute_dates", "missing_facts"]
