"""Finds messages of an assistant that mostly repeat an older message: the answers of turns that recalled something.

Such an answer is newer than what it quotes and often shorter, so it would match better. `RepeatedQuestions` ranks
without it, and counts it at the session that said it first.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, TITLE, TOOL, USER, Posting
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.term_matches import Matches, SessionScore

# A text repeats another if it has this much of the shorter one's sequences, and that is not very short.
_MIN_SHARED = 0.6
_MIN_SEQUENCES = 5
_MAX_CHARACTERS = 4_000
"""The beginning of a longer text is compared."""
_FIRST = 6
"""If none of the first results repeats another, the others are not read."""
_MAX_READ = 400
_MIN_TERMS = 0.5
_by_time = itemgetter(5, 0)


def sequences(text: str) -> frozenset[int]:
    """The runs of three tokens in a text, as hashes; texts that share many of them repeat each other."""
    tokens = tokenize(text)
    return frozenset(map(hash, zip(tokens, tokens[1:], tokens[2:], strict=False)))


_cached_sequences = lru_cache(maxsize=2_000)(sequences)


def find_repetitions(
    reader: IndexReader, scores: Sequence[SessionScore], matches: Matches, skipped: Collection[int]
) -> dict[Posting, Posting]:
    """The matching messages that repeat an older one, each with that one; those of `skipped` sessions do not count."""
    first = [score.best for score in scores[:_FIRST] if _may_count(score.best, skipped)]
    found = _compare(reader, first) if len(first) > 1 and any(row.role == ASSISTANT for row in first) else {}
    if not found:
        return {}
    typed = matches.typed
    terms = {row.message: (mask & typed).bit_count() for row, mask in matches.rows}
    rows = {row.message: row for row, mask in matches.rows if mask & typed and _may_count(row, skipped)}
    # Where only related words were found, there are no rows.
    minimum = _MIN_TERMS * max((terms[message] for message in rows), default=0)
    some = [row for message, row in rows.items() if terms[message] >= minimum]
    some.sort(key=lambda row: (-terms[row.message], row.time))
    found |= _compare(reader, some[:_MAX_READ])
    # Where both the prompt and its answer are repetitions, neither competes.
    sessions = {row.session for row in found}
    prompts = [row for row in rows.values() if row.role == USER and row.session in sessions]
    return found | _compare(reader, prompts[:_MAX_READ], USER)


def count_sessions(repeated: Mapping[Posting, Posting]) -> dict[int, int]:
    """How many sessions repeat each session."""
    return Counter(original for original, _ in {(older.session, row.session) for row, older in repeated.items()})


def _may_count(row: Posting, skipped: Collection[int]) -> bool:
    return row.role not in (TITLE, TOOL) and row.session not in skipped


def _compare(reader: IndexReader, rows: Iterable[Posting], role: int = ASSISTANT) -> dict[Posting, Posting]:
    """The rows of a role that repeat an older one of another session."""
    ordered = sorted(rows, key=_by_time)
    messages = reader.messages([row.message for row in ordered])
    owners: dict[int, int] = {}
    lengths: list[int] = []
    found: dict[Posting, Posting] = {}
    for number, row in enumerate(ordered):
        message = messages.get(row.message)
        text = "" if message is None else searchable_text(message).text[:_MAX_CHARACTERS]
        own = _cached_sequences(text)
        lengths.append(len(own))
        if len(own) < _MIN_SEQUENCES:
            continue
        shared = own & owners.keys() if row.role == role else ()
        if len(shared) >= _MIN_SHARED * _MIN_SEQUENCES:
            older, count = Counter(owners[sequence] for sequence in shared).most_common(1)[0]
            if count >= _MIN_SHARED * min(len(own), lengths[older]) and ordered[older].session != row.session:
                found[row] = ordered[older]
                continue
        owners.update(dict.fromkeys(own - owners.keys(), number))
    return found
