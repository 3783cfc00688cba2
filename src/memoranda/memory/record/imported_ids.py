"""The new ids of imported messages, by their ids in the store they come from."""

from array import array

_CHUNK = 32
_NONE = -(2**63)


class ImportedIds:
    """A map from old ids to new ones that takes about ten bytes for an id of a whole store, where a dict takes 130."""

    def __init__(self) -> None:
        self._chunks: dict[int, array[int]] = {}

    def __setitem__(self, old: int, new: int) -> None:
        number, index = divmod(old, _CHUNK)
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = array("q", [_NONE] * _CHUNK)
        chunk[index] = new

    def get(self, old: int) -> int | None:
        """The new id of a message; None if it was not imported."""
        number, index = divmod(old, _CHUNK)
        chunk = self._chunks.get(number)
        return None if chunk is None or chunk[index] == _NONE else chunk[index]
