"""A credential that was found, and how overlapping ones are combined."""

from collections.abc import Iterable
from typing import NamedTuple


class FoundSecret(NamedTuple):
    """A credential at `start` up to `end` of the text; `kind` names its issuer or form."""

    kind: str
    start: int
    end: int


def drop_overlaps(found: Iterable[FoundSecret]) -> list[FoundSecret]:
    """The credentials sorted by position; of those that overlap, only what the first does not cover."""
    kept: list[FoundSecret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
        elif secret.end > kept[-1].end:  # the rest of a credential that begins within another one
            kept.append(FoundSecret(secret.kind, kept[-1].end, secret.end))
    return kept
