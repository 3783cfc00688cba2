"""The rules of the curator that need no home: the dates of a text made absolute.

`absolute_dates(text, written)` returns the text with the dates that it meant on the day it was written.
"""

from memoranda.memory.curated.absolute_dates import absolute_dates

__all__ = ["absolute_dates"]
