"""The matches that a search adds to those of the typed terms: of related words, and of standing instructions.

Only a question gets them; keywords mean what they say.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memoranda.memory.record.feed import FeedMessage
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Filters, Pattern, Posting
from memoranda.search.index.reader import IndexReader
from memoranda.search.query import Term
from memoranda.search.related_terms import RelatedTerm, possible_patterns, related_terms
from memoranda.search.standing_instructions import MARKERS, concerns_work, is_standing

# The weight of a standing instruction, as a share of the weight of all typed terms.
STANDING = 0.3
# Of how many messages with the marker words and the most of the terms the text is read, and how many of those may rank
# higher: more would crowd out everything else.
_MAX_READ = 20
_MAX_STANDING = 5
STANDING_TERM = Term("standing instruction", MARKERS, "standing instruction")


@dataclass(slots=True)
class AddedTerms:
    """Finds what is added to the terms of one question."""

    question: str
    filters: Filters
    reader: IndexReader
    sentence: bool
    """Whether it is a sentence; a list of words asks for no work."""

    def related(self, terms: Sequence[Term]) -> list[RelatedTerm]:
        """The words that are related to the terms and occur."""
        self.reader.prepare(possible_patterns(terms))
        return related_terms(terms, self.reader.frequency)

    def standing(self, weighted: Sequence[tuple[Pattern, float]]) -> list[Posting]:
        """The messages of the user that have the most of these patterns and are standing instructions; the best few."""
        roles = self.filters.roles
        if (
            not self.sentence
            or not weighted
            or not concerns_work(self.question)
            or (roles is not None and "user" not in roles)
        ):
            return []
        filters = replace(self.filters, roles=frozenset({"user"}), titles=False)
        best = self.reader.heaviest(weighted, MARKERS, filters, _MAX_READ)
        messages = self.reader.messages([row.message for row in best])
        kept = [row for row in best if row.message in messages and _instructs(messages[row.message])]
        return kept[:_MAX_STANDING]


def _instructs(message: FeedMessage) -> bool:
    return is_standing(searchable_text(message).text)
