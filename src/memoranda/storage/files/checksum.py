"""A short checksum in letters, which finds accidental damage; it does not stop a forger."""

from binascii import crc32

# Without vowels and digits: no word and no number that a person wants to forget is found in a checksum by chance.
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"bcdfghjklmnpqrst")
CHECKSUM_PATTERN = "[bcdfghjklmnpqrst]{8}"


def checksum(content: bytes) -> str:
    """The CRC-32 of some bytes as eight letters: it differs after any change of up to 32 bits in a row."""
    return (b"%08x" % crc32(content)).translate(_LETTERS).decode()
