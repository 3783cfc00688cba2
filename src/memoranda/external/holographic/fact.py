"""The values of a stored fact and of its origin."""

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
    """A request that cannot be fulfilled: an unknown fact, an empty text, or the text of another fact."""


class Provenance(NamedTuple):
    """The origin of a fact."""

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
        """The factor by which its age lowers its score."""
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
            "created_at": _format_timestamp(self.created_at),
            "updated_at": _format_timestamp(self.updated_at),
            "provenance": self.provenance._asdict(),
        }


def fact_from_row(row: tuple[Any, ...], entities: tuple[str, ...]) -> Fact:
    """The fact of a row with `COLUMNS`."""
    tags = tuple(tag for tag in row[3].split(",") if tag)
    fact_id, content, category, _, trust, retrieved, helpful, created, updated, session, message, by, mirror_of = row
    origin = Provenance(session, message, by)
    return Fact(
        fact_id, content, category, tags, trust, retrieved, helpful, created, updated, origin, mirror_of, entities
    )


def content_key(content: str) -> str:
    """A digest that ignores case, width, spaces and the final punctuation mark."""
    plain = " ".join(unicodedata.normalize("NFKC", content).casefold().split()).rstrip(" .!。！")
    return hashlib.sha256(plain.encode()).hexdigest()


def _format_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
