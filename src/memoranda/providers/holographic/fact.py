"""What a fact is once it is stored, and where it came from."""

import hashlib
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from memoranda.errors import StorageError

CATEGORIES = ("user_pref", "project", "tool", "general")
COLUMNS = (
    "fact_id, content, category, tags, trust_score, retrieval_count, helpful_count, created_at, updated_at,"
    " session_id, message, written_by, mirror_of"
)


class FactError(StorageError, ValueError):
    """What was asked cannot be: an unknown fact, an empty text, a text that another fact has."""


class Provenance(NamedTuple):
    """Where a fact comes from; when is the fact's own time."""

    session_id: str = ""
    message: str = ""
    written_by: str = ""


UNKNOWN = Provenance()


@dataclass(frozen=True, slots=True)
class Fact:
    fact_id: int
    content: str
    category: str
    tags: tuple[str, ...]
    trust: float
    retrieval_count: int
    helpful_count: int
    created_at: float
    updated_at: float
    provenance: Provenance
    mirror_of: str
    entities: tuple[str, ...] = ()

    def decay(self, now: float, half_life_days: float) -> float:
        """What is left of its weight at this age."""
        if half_life_days <= 0:
            return 1.0
        return float(0.5 ** (max(0.0, now - self.updated_at) / 86_400 / half_life_days))

    def as_data(self) -> dict[str, Any]:
        return {
            "fact_id": self.fact_id,
            "content": self.content,
            "category": self.category,
            "tags": ",".join(self.tags),
            "entities": list(self.entities),
            "trust_score": round(self.trust, 4),
            "retrieval_count": self.retrieval_count,
            "helpful_count": self.helpful_count,
            "created_at": _written(self.created_at),
            "updated_at": _written(self.updated_at),
            "provenance": self.provenance._asdict(),
        }


def fact_from_row(row: tuple[Any, ...], entities: tuple[str, ...]) -> Fact:
    """A fact from a row of `COLUMNS`."""
    tags = tuple(tag for tag in row[3].split(",") if tag)
    fact_id, content, category, _, trust, retrieved, helpful, created, updated, session, message, by, mirror_of = row
    origin = Provenance(session, message, by)
    return Fact(
        fact_id, content, category, tags, trust, retrieved, helpful, created, updated, origin, mirror_of, entities
    )


def content_key(content: str) -> str:
    """The same for texts that differ only in case, width, spaces and the mark at the end."""
    plain = " ".join(unicodedata.normalize("NFKC", content).casefold().split()).rstrip(" .!。！")
    return hashlib.sha256(plain.encode()).hexdigest()


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
