"""The matches that a search adds to those of the typed terms: of related words, and of standing instructions.

Only a question gets them; keywords mean what they say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from memoranda.index.message_text import searchable_text
from memoranda.index.postings import And, Filters, Or, Pattern, Posting
from memoranda.index.reader import IndexReader
from memoranda.recall.query import Term
from memoranda.recall.related_terms import related_terms
from memoranda.recall.standing_instructions import MARKERS, concerns_work, is_standing
from memoranda.recall.term_matches import TermMatches
from memoranda.sessions.feed import FeedMessage

# The weight of a standing instruction, as a share of the weight of all typed terms.
STANDING = 0.2
_MAX_ROWS = 3_000
# Of how many messages with the marker words the terms are compared, of how many of them the text is read, and how many
# of those may rank higher: more would crowd out everything else.
_MAX_MARKED = 300
_MAX_READ = 20
_MAX_STANDING = 5
_STANDING = Term("standing instruction", MARKERS, "standing instruction")


@dataclass(slots=True)
class AddedTerms:
    """Finds what is added to the terms of one question."""

    question: str
    filters: Filters
    reader: IndexReader
    postings: Callable[[Pattern, int, Filters], list[Posting]]

    def find(self, found: Mapping[Term, TermMatches], absent: Sequence[Term]) -> dict[Term, TermMatches]:
        """The added terms with their matches. `found` and `absent` are the typed terms."""
        added: dict[Term, TermMatches] = {}
        for related in related_terms([*found, *absent], self.reader.frequency):
            rows = self.postings(related.term.pattern, _MAX_ROWS, self.filters)
            if rows:
                frequency = max(len(rows), self.reader.frequency(related.term.pattern))
                added[related.term] = TermMatches(
                    rows, frequency, group=related.typed, typed=False, closeness=related.closeness
                )
        if concerns_work(self.question) and (rows := self._standing({**found, **added})):
            added[_STANDING] = TermMatches(rows, len(rows), typed=False, bonus=STANDING)
        return added

    def _standing(self, found: Mapping[Term, TermMatches]) -> list[Posting]:
        """The messages of the user that have some of the terms and are standing instructions; the best few."""
        roles = self.filters.roles
        leading = {term: match for term, match in found.items() if not match.framing}
        if not leading or (roles is not None and "user" not in roles):
            return []
        some = And((MARKERS, Or(tuple(term.pattern for term in leading))))
        rows = self.postings(some, _MAX_MARKED, replace(self.filters, roles=frozenset({"user"}), titles=False))
        weights = dict.fromkeys(rows, 0.0)
        for match in leading.values():
            for row in match.postings:
                if row in weights:
                    weights[row] += match.closeness / (1 + match.frequency)
        best = sorted(rows, key=lambda row: (-weights[row], -row.time))[:_MAX_READ]
        messages = self.reader.messages([row.message for row in best])
        kept = [row for row in best if row.message in messages and _instructs(messages[row.message])]
        return kept[:_MAX_STANDING]


def _instructs(message: FeedMessage) -> bool:
    return is_standing(searchable_text(message).text)
