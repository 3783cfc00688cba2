"""The legs of recall: each is one way of finding sessions, in one file.

A leg that needs only the index is one more name in `LEGS`. One that needs more (a model, a file of its own) is a
`functools.partial` in the legs that are passed to `Search`.
"""

from collections.abc import Sequence

from memoranda.recall.legs.leg import MakeLeg
from memoranda.recall.legs.words import WordLeg

LEGS: Sequence[MakeLeg] = (WordLeg,)
