"""The legs of recall: each is one way of finding sessions, in one file.

Add a leg that needs only the index to `LEGS`. Pass a leg that needs more (a model, its own file) to `Search` as a
`functools.partial`.
"""

from collections.abc import Sequence

from memoranda.search.legs.leg import MakeLeg
from memoranda.search.legs.words import WordLeg

LEGS: Sequence[MakeLeg] = (WordLeg,)
