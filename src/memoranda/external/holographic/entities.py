"""Names in a text, and the entities of the store with their names, aliases and links to facts.

The rules that find names prefer missing an entity to inventing one.

Names are capitalised words inside a sentence and runs of them (ACME Corp, University of Oslo), short quoted texts,
@handles, names of files and code, and both sides of "X aka Y". A capitalised word at the start of a sentence counts if
the next words show that it is a name (Peppi runs …), or if it is a known name. Unspaced scripts have no capitals:
their names are taken from quotation marks, or found if they are known.

Entities are compared by the key of a name and only for equality. Two names become one entity if a text says so ("X aka
Y"); the facts of the merged entity are then encoded again.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from memoranda.external.holographic.encoding import Encoder
from memoranda.search.index.tokenizer import is_unspaced
from memoranda.storage.sqlite.database import Connection

MAX_NAME_CHARS = 80
_MAX_QUOTED_WORDS = 5
_MAX_KNOWN_RUN = 6
_LOOKBACK_CHARS = 20

_QUOTED = re.compile(
    r"\"([^\"\n]{1,80})\"|“([^”\n]{1,80})”|「([^」\n]{1,80})」|『([^』\n]{1,80})』|《([^》\n]{1,80})》"
    r"|(?<![^\s(\[,:])['‘]([^'’\n]{1,80})['’](?![^\s)\].,:;!?])"
)
_CODE = re.compile(r"`([^`\n]{1,80})`")
_HANDLE = re.compile(r"(?<![\w.@/])@[^\W_][\w-]*(?:\.[\w-]+)*")
_FILE = re.compile(
    r"(?<![\w/.@:-])(?:~?\.{0,2}/)?(?:[\w.-]+/)+[\w.-]*[\w-](?:\.\w{1,5})?|(?<![\w/.@:-])[\w-]+\.[a-z][a-z0-9]{0,4}\b(?![\w/.])"
)
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z][a-z0-9]*_[a-z0-9_]+|[A-Z]+(?:_[A-Z0-9]+)+|[a-z]+[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,})\b"
)
_ALIAS = re.compile(r"\s*[,(]?\s*\b(?:aka|a\.k\.a\.|also known as|alias|better known as)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_](?:[\w'’&+#-]|\.(?=\w))*")
_SENTENCE_END = re.compile(r"[.!?:;。！？\n•]\s*[\"'“”‘’(\[*-]*\s*$|^[\s\"'“”‘’(\[*#-]*$")
_PARTICLES = frozenset(("of", "de", "van", "von", "der", "den", "da", "del", "di", "la", "al", "bin", "&"))
_CALENDAR = """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
October November December Mon Tue Tues Wed Thu Thurs Fri Sat Sun Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
Christmas Easter Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays
"""
_NO_NAMES = """
I I'm I've I'd I'll OK TODO FYI NOTE NB AM PM UTC GMT ASAP PS ETA N/A FIXME WIP TBD AKA YES NO A AN THE AND OR NOT
CEO CTO CFO COO CIO
"""
# Words that start sentences and notes without being names.
_OPENERS = """
a an the this that these those there here it its he she they we you our your my his her their i if when while where why
how what which who whose whenever wherever because since although though unless until before after during for from in
on at by with without about into over under between through as and or but so nor yet not no yes please also then thus
hence however therefore moreover meanwhile today yesterday tomorrow now later soon sometimes usually often always never
rarely maybe perhaps probably currently recently previously finally first second third last next each every all any
some many most few several both either neither one two three four five once again only just even still already
use uses using used add adds run runs set sets make makes do does don't did is are was were be been has have had can
could will would shall should may might must let let's keep keeps get gets put puts give take takes try tries see note
remember forget prefer prefers like likes love loves hate hates want wants need needs avoid avoids check checks call
calls write writes read reads build builds test tests deploy deploys install installs update updates remove removes
delete deletes create creates start starts stop stops open opens close closes send sends ask asks tell tells show shows
move moves change changes fix fixes work works live lives enable disable switch store stores save saves include includes
ensure verify consider follow apply treat assume expect start work report review merge commit push pull format log
user users project tool general fact facts memory thanks hello hi hey sorry sure
"""
_NOT_NAMES = frozenset(word.casefold() for word in (_CALENDAR + _NO_NAMES).split())
_OPENING = frozenset(_OPENERS.split())
_VERBS = re.compile(
    r"\s+(?:(?:also|still|now|never|always|usually|often|currently|really|no longer)\s+)?"
    r"(?:is|was|has|had|will|would|can|could|does|did|wrote|said|told|made|went|met|got|took|came|left|kept|ran|built"
    r"|chose|spoke|knows|saw|gave|found|sent|bought|sold|knew|held|led|taught|won|lost|began|grew|spent|ate|drove|quit|[a-z]{2,}(?:[^s\W\d_]s|ed))\b|['’]s\b"
)
_USER = re.compile(r"\b(?:the user|user)(?:['’]s)?\b", re.IGNORECASE)

FindKnown = Callable[[list[str]], set[str]]

_BATCH = 500
_T = TypeVar("_T")


class Entity(NamedTuple):
    """A name as written, the kind of name, and the name that it is an alias of, if the text says so."""

    name: str
    kind: str = "name"
    alias_of: str = ""


class _Span(NamedTuple):
    start: int
    end: int
    entity: Entity


def key_of(name: str) -> str:
    """The key of a name, which ignores case, width, spaces and quotation marks."""
    plain = " ".join(unicodedata.normalize("NFKC", name).replace("’", "'").casefold().split())
    return plain.strip("\"'`.,;:!?()[]{}“”‘「」『』《》 ").removesuffix("'s").strip()


def find_entities(text: str, find_known: FindKnown = lambda keys: set()) -> list[Entity]:
    """The names in a text in order, each once. `find_known` returns those keys of a list that are known names."""
    spans: list[_Span] = []
    taken = bytearray(len(text))
    for span in (*_marked_names(text), *_capitalised_names(text, find_known), *_known_runs(text, find_known)):
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"x" * (span.end - span.start)
            spans.append(span)
    spans.sort()
    found: dict[str, Entity] = {}
    for before, span in zip([None, *spans], spans, strict=False):
        entity = span.entity
        if before is not None and _ALIAS.fullmatch(text[before.end : span.start]):
            entity = entity._replace(alias_of=before.entity.name)
        found.setdefault(key_of(entity.name), entity)
    return [entity for key, entity in found.items() if key and len(entity.name) <= MAX_NAME_CHARS]


def _marked_names(text: str) -> Iterator[_Span]:
    """Names that have quotation marks or the form of code, a file or a handle."""
    for match in _CODE.finditer(text):
        yield _Span(match.start(), match.end(), Entity(match[1].strip(), "code"))
    for match in _QUOTED.finditer(text):
        name = next(group for group in match.groups() if group is not None).strip()
        if name and len(name.split()) <= _MAX_QUOTED_WORDS and name[-1] not in ".!?,;:。！？":
            yield _Span(match.start(), match.end(), Entity(name, "quoted"))
    for pattern, kind in ((_HANDLE, "handle"), (_FILE, "code"), (_IDENTIFIER, "code")):
        for match in pattern.finditer(text):
            if any(letter.isalpha() for letter in match.group()):
                yield _Span(match.start(), match.end(), Entity(match.group(), kind))
    for match in _USER.finditer(text):
        yield _Span(match.start(), match.end(), Entity("user", "user"))
    for match in _ALIAS.finditer(text):
        # "Guido aka bdfl": after "aka" even a lower-case word is a name.
        if (word := _WORD.match(text, match.end())) and word.group().islower() and word.group() not in _OPENING:
            yield _Span(word.start(), word.end(), Entity(word.group()))


def _capitalised_names(text: str, find_known: FindKnown) -> Iterator[_Span]:
    words = list(_WORD.finditer(text))
    index = 0
    while index < len(words):
        if not _looks_like_a_name(words[index].group()):
            index += 1
            continue
        last = _run_end(text, words, index)
        yield from _names_in_run(text, words[index : last + 1], find_known)
        index = last + 1


def _run_end(text: str, words: list[re.Match[str]], first: int) -> int:
    """The index of the last word of the run of names that starts at `first`."""
    last = index = first
    while index + 1 < len(words) and text[words[index].end() : words[index + 1].start()] in (" ", " & "):
        if words[last].group().endswith(("'s", "’s")):
            break
        index += 1
        if _looks_like_a_name(words[index].group()):
            last = index
        elif words[index].group() not in _PARTICLES or index - last > 2:
            break
    return last


def _names_in_run(text: str, words: list[re.Match[str]], find_known: FindKnown) -> Iterator[_Span]:
    if _starts_sentence(text, words[0].start()):
        if words[0].group().replace("’", "'").casefold().removesuffix("'s") in _OPENING:
            words = words[1:]
            while words and words[0].group() in _PARTICLES:
                words = words[1:]
        elif len(words) == 1 and not _is_surely_a_name(text, words[0], find_known):
            return
    if not words:
        return
    end = words[-1].end() - (2 if words[-1].group().endswith(("'s", "’s")) else 0)
    name = text[words[0].start() : end].rstrip("'’-.&")
    if len(name) > 1:
        yield _Span(words[0].start(), words[0].start() + len(name), Entity(name))


def _starts_sentence(text: str, position: int) -> bool:
    # A fixed length, so that the cost does not depend on the position; it is enough for any punctuation.
    before = text[max(0, position - _LOOKBACK_CHARS) : position]
    return _SENTENCE_END.search(before if position <= _LOOKBACK_CHARS else f"x{before}") is not None


def _is_surely_a_name(text: str, word: re.Match[str], find_known: FindKnown) -> bool:
    """Whether a word at the start of a sentence is a name."""
    shape = word.group()
    if (len(shape) > 1 and shape.isupper()) or shape.endswith(("'s", "’s")) or _VERBS.match(text, word.end()):
        return True
    return bool(_ALIAS.match(text, word.end()) or find_known([key_of(shape)]))


def _looks_like_a_name(word: str) -> bool:
    plain = word.replace("’", "'").casefold()
    return word[0].isupper() and plain.removesuffix("'s") not in _NOT_NAMES


def _known_runs(text: str, find_known: FindKnown) -> Iterator[_Span]:
    """Known names inside runs of unspaced scripts, the longest first."""
    if text.isascii():
        return
    starts: dict[str, list[int]] = {}
    for start, character in enumerate(text):
        if is_unspaced(character):
            for length in range(2, _MAX_KNOWN_RUN + 1):
                piece = text[start : start + length]
                if len(piece) == length and is_unspaced(piece[-1]):
                    starts.setdefault(piece, []).append(start)
    if not starts:
        return
    names = find_known(list(starts))
    for piece in sorted((piece for piece in starts if key_of(piece) in names), key=len, reverse=True):
        for start in starts[piece]:
            yield _Span(start, start + len(piece), Entity(piece))


class KnownEntity(NamedTuple):
    """An entity of the store; its vector is computed from `key`."""

    entity_id: int
    name: str
    key: str


def find_entity(connection: Connection, name: str) -> KnownEntity | None:
    """The entity with this name or alias."""
    row = connection.execute(
        "SELECT entities.entity_id, name, name_key FROM aliases JOIN entities USING (entity_id) WHERE alias_key = ?",
        (key_of(name),),
    ).fetchone()
    return KnownEntity(*row) if row else None


def known_keys(connection: Connection, names: list[str]) -> set[str]:
    found: set[str] = set()
    for batch in _batches([key_of(name) for name in names]):
        marks = ", ".join("?" * len(batch))
        found |= {
            row[0] for row in connection.execute(f"SELECT alias_key FROM aliases WHERE alias_key IN ({marks})", batch)
        }
    return found


def link(
    connection: Connection, encoder: Encoder, fact_id: int, entities: Iterable[Entity], now: float
) -> list[KnownEntity]:
    """Replaces the entities of a fact with these."""
    connection.execute("DELETE FROM fact_entities WHERE fact_id = ?", (fact_id,))
    for entity in entities:
        known = _resolve(connection, encoder, entity, now)
        if entity.alias_of:
            other = _resolve(connection, encoder, Entity(entity.alias_of), now)
            known = _merge(connection, other, known)
        connection.execute(
            "INSERT INTO fact_entities (fact_id, entity_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (fact_id, known.entity_id),
        )
    return entities_of(connection, [fact_id]).get(fact_id, [])


def entities_of(connection: Connection, fact_ids: Sequence[int]) -> dict[int, list[KnownEntity]]:
    """The entities of each fact, in the order of their first mention."""
    found: dict[int, list[KnownEntity]] = {}
    for batch in _batches(list(fact_ids)):
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(
            "SELECT fact_id, entity_id, name, name_key FROM fact_entities JOIN entities USING (entity_id)"
            f" WHERE fact_id IN ({marks}) ORDER BY entity_id",
            batch,
        )
        for fact_id, *known in rows:
            found.setdefault(fact_id, []).append(KnownEntity(*known))
    return found


def aliases_of(connection: Connection) -> dict[int, list[str]]:
    """Every name of every entity."""
    names: dict[int, list[str]] = {}
    for entity_id, alias in connection.execute("SELECT entity_id, alias FROM aliases"):
        names.setdefault(entity_id, []).append(alias)
    return names


def similar_names(
    connection: Connection, encoder: Encoder, name: str, min_coverage: float
) -> list[tuple[float, KnownEntity]]:
    """The entities with a name that contains or resembles this one, best first."""
    key = key_of(name)
    name_sketch = int.from_bytes(encoder.name_sketch(key), "little")
    found = []
    for entity_id, known_name, known_key, sketch in connection.execute(
        "SELECT entity_id, name, name_key, sketch FROM entities WHERE encoding = ?", (encoder.name,)
    ):
        coverage = encoder.name_coverage(key, name_sketch, known_key, int.from_bytes(sketch, "little"))
        if coverage >= min_coverage:
            found.append((min(1.0, coverage), KnownEntity(entity_id, known_name, known_key)))
    return sorted(found, key=lambda pair: (-pair[0], len(pair[1].key), pair[1].entity_id))


def drop_unused(connection: Connection) -> None:
    """Removes the entities that no fact is about."""
    unused = "SELECT entity_id FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM fact_entities)"
    connection.execute(f"DELETE FROM aliases WHERE entity_id IN ({unused})")
    connection.execute("DELETE FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM fact_entities)")


def _resolve(connection: Connection, encoder: Encoder, entity: Entity, now: float) -> KnownEntity:
    known = find_entity(connection, entity.name)
    if known is not None:
        return known
    key = key_of(entity.name)
    row = connection.execute(
        "INSERT INTO entities (name, name_key, entity_type, created_at, encoding, sketch) VALUES (?, ?, ?, ?, ?, ?)",
        (entity.name, key, entity.kind, now, encoder.name, encoder.name_sketch(key)),
    )
    entity_id = int(row.lastrowid or 0)
    connection.execute(
        "INSERT INTO aliases (alias_key, alias, entity_id) VALUES (?, ?, ?)", (key, entity.name, entity_id)
    )
    return KnownEntity(entity_id, entity.name, key)


def _merge(connection: Connection, target: KnownEntity, merged: KnownEntity) -> KnownEntity:
    """Merges an entity into the target, which gets all names; the facts of the merged one will be encoded again."""
    if target.entity_id == merged.entity_id:
        return target
    numbers = (target.entity_id, merged.entity_id)
    connection.execute(
        "UPDATE facts SET encoding = '' WHERE fact_id IN (SELECT fact_id FROM fact_entities WHERE entity_id = ?)",
        (merged.entity_id,),
    )
    connection.execute("UPDATE OR IGNORE fact_entities SET entity_id = ? WHERE entity_id = ?", numbers)
    connection.execute("DELETE FROM fact_entities WHERE entity_id = ?", (merged.entity_id,))
    connection.execute("UPDATE aliases SET entity_id = ? WHERE entity_id = ?", numbers)
    connection.execute("DELETE FROM entities WHERE entity_id = ?", (merged.entity_id,))
    return target


def _batches(items: list[_T]) -> Iterator[list[_T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
