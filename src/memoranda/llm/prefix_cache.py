"""What a provider's prompt cache would serve: how much of a request stood at the beginning of an earlier one."""

import hashlib
from collections.abc import Iterator, Sequence


class PrefixCache:
    """Remembers requests as sequences of parts; it knows them by their fingerprints alone."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def count_known(self, parts: Sequence[str]) -> int:
        """How many leading parts are known; the request is known from now on."""
        digests = list(digests_of(parts))
        known = next((place for place, digest in enumerate(digests) if digest not in self._seen), len(digests))
        self._seen.update(digests[known:])
        return known


def digests_of(parts: Sequence[str]) -> Iterator[bytes]:
    """The fingerprint of everything up to each part."""
    running = hashlib.sha256()
    for part in parts:
        running.update(len(part).to_bytes(8, "big"))
        running.update(part.encode("utf-8", "surrogatepass"))
        yield running.digest()[:16]
