"""ByteRover: a tree of knowledge in files on this machine, which the program `brv` searches and extends."""

from memoranda.external.vendors.byterover.vendor import ByteRoverProvider

__all__ = ["ByteRoverProvider"]
