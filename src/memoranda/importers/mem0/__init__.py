"""mem0: the local stores of its open-source library, and saved pages of its platform."""

from memoranda.importers.mem0.reader import Mem0

__all__ = ["Mem0"]
