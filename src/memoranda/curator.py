"""The rule of the curator that needs no home, for programs that merge entries themselves.

`missing_facts(originals, merged)` returns what a merged text lacks of its originals; an empty list when nothing.
"""

from memoranda.upkeep.curator.missing_facts import missing_facts

__all__ = ["missing_facts"]
