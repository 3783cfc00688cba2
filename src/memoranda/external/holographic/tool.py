"""The tools `fact_store` and `fact_feedback`; they answer any arguments of a model with one JSON object."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.errors import MemorandaError
from memoranda.external.holographic.contradictions import find_contradictions
from memoranda.external.holographic.encoding import MAX_ENTITIES
from memoranda.external.holographic.entities import MAX_NAME_CHARS, key_of
from memoranda.external.holographic.fact_store import CATEGORIES, FactError, FactStore, Provenance
from memoranda.external.holographic.retrieval import FactFilter, FoundFact, Retriever
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

SYSTEM_PROMPT = """\
# Facts
Long-term facts are stored on this machine. Relevant ones are added to your turn, with their age and trust.
Use fact_store to add a lasting fact (one plain sentence that names who or what it is about), to search for more, to ask
about one entity (probe, related) or several at once (reason), and to find facts that contradict each other. Update or
remove outdated facts. Say with fact_feedback whether a recalled fact helped; this raises or lowers its trust."""

_STORE = """\
Long-term facts about people, projects and tools, stored on this machine.
add: store a fact; content is one plain sentence that names what it is about, such as "Ana lives in Berlin". Give tags \
too: the words of questions that it will answer ("home, address, city, where from").
search: facts by the words of query.
probe: facts about entity; a partial or misspelt name is enough.
related: what is connected to entity, and the facts that connect them.
reason: facts about all of entities at once.
contradict: pairs of facts that cannot both be right.
update: change content, category, tags, entities or trust of fact_id.
remove: forget fact_id.
list: the newest facts."""

_FEEDBACK = """\
Say whether a fact that you recalled helped. Helpful facts gain trust and rank higher; unhelpful or wrong ones lose \
trust and are eventually no longer recalled."""

_ACTION = "What to do."
_CONTENT = "The fact, in one sentence. For add and update."
_QUERY = "Words to look for. For search; with probe and reason, facts about these words come first."
_ENTITY = "A name. For probe and related."
_ENTITIES = (
    "Names. For reason: a fact must be about all of them. For add and update: what the fact is about, if its text is "
    "unclear."
)
_FACT_ID = "The number of a fact. For update and remove."
_RATED = "The number of the fact."
_CATEGORY = "Kind of fact. For add (default general) and update; elsewhere only facts of this kind are returned."
_TAGS = (
    "Words that the fact does not have and that a question for it may have, separated by commas, 8 to 15: what kind of "
    "thing it is, everyday words for it, what it is used for or matters for. For add and update."
)
_TRUST_DELTA = "Change of trust, between -1 and 1. For update."
_MIN_TRUST = "Omit facts with less trust (default {default:g}; for list 0)."
_LIMIT = "Maximum number of results (default 10)."
_RATING = "helpful: the fact was right and useful. unhelpful: it was wrong, outdated or irrelevant."

ACTIONS = ("add", "search", "probe", "related", "reason", "contradict", "update", "remove", "list")
_RATINGS = ("helpful", "unhelpful")
_MAX_RESULTS = 50
_MAX_QUERY_CHARS = 4000
_MAX_TAGS_CHARS = 400
_MAX_INTEGER = 2**63 - 1


def schemas(min_trust: float) -> list[JsonObject]:
    """The schemas of both tools for a model."""
    text = {"type": "string"}
    store: JsonObject = {
        "action": text | {"enum": list(ACTIONS), "description": _ACTION},
        "content": text | {"description": _CONTENT},
        "query": text | {"description": _QUERY},
        "entity": text | {"description": _ENTITY},
        "entities": {"type": "array", "items": text, "description": _ENTITIES},
        "fact_id": {"type": "integer", "description": _FACT_ID},
        "category": text | {"enum": list(CATEGORIES), "description": _CATEGORY},
        "tags": text | {"description": _TAGS},
        "trust_delta": {"type": "number", "description": _TRUST_DELTA},
        "min_trust": {"type": "number", "description": _MIN_TRUST.format(default=min_trust)},
        "limit": {"type": "integer", "description": _LIMIT},
    }
    feedback: JsonObject = {
        "action": text | {"enum": list(_RATINGS), "description": _RATING},
        "fact_id": {"type": "integer", "description": _RATED},
    }
    return [
        _schema("fact_store", _STORE, store, ["action"]),
        _schema("fact_feedback", _FEEDBACK, feedback, ["action", "fact_id"]),
    ]


class FactTools:
    """Both tools over one store."""

    def __init__(self, store: FactStore, retriever: Retriever, min_trust: float) -> None:
        self._store = store
        self._retriever = retriever
        self._min_trust = min_trust
        self._actions: dict[str, Callable[[Mapping[str, Any], Provenance], JsonObject]] = {
            "add": self._add,
            "search": self._search,
            "probe": self._probe,
            "related": self._related,
            "reason": self._reason,
            "contradict": self._contradict,
            "update": self._update,
            "remove": self._remove,
            "list": self._list,
        }

    def call(self, name: str, arguments: Any, provenance: Provenance) -> JsonObject:
        """Answers one call; a failure has an `error`."""
        try:
            if not isinstance(arguments, Mapping):
                raise FactError("The arguments must be an object.")
            if name == "fact_feedback":
                return self._feedback(arguments)
            if name != "fact_store":
                raise FactError(f"There is no tool {name!r}; the tools are fact_store and fact_feedback.")
            return self._actions[_choice(arguments, "action", ACTIONS)](arguments, provenance)
        except MemorandaError as error:
            return {"error": str(error)}

    def _add(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        names = _names(arguments)
        fact, new = self._store.add(
            _text(arguments, "content"),
            category=_category(arguments) or "general",
            tags=_tags(arguments) or (),
            entities=names or None,
            provenance=provenance,
        )
        answer = {"fact_id": fact.fact_id, "status": "added" if new else "exists", "entities": list(fact.entities)}
        return answer if new else answer | {"trust_score": fact.trust}

    def _search(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        return self._results(self._retriever.search(_query(arguments), self._filter(arguments)))

    def _probe(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        name = _name(arguments)
        found = self._retriever.probe(name, self._filter(arguments)._replace(about=_about(arguments)))
        return self._results(found) | self._other_names([name])

    def _related(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        name = _name(arguments)
        neighbours, found = self._retriever.related(name, self._filter(arguments))
        entities = [neighbour._asdict() for neighbour in neighbours]
        return self._results(found) | {"entities": entities} | self._other_names([name])

    def _reason(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        names = _names(arguments) or ([_name(arguments)] if arguments.get("entity") is not None else [])
        if not names:
            raise FactError("entities is missing: name the entities that a fact must be about.")
        found = self._retriever.reason(names, self._filter(arguments)._replace(about=_about(arguments)))
        return self._results(found) | self._other_names(names)

    def _contradict(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        filters = self._filter(arguments)
        pairs = find_contradictions(
            self._store, category=filters.category, min_trust=filters.min_trust, limit=filters.limit
        )
        return {"results": [pair.as_data() for pair in pairs], "count": len(pairs)}

    def _update(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        content = _text(arguments, "content") if arguments.get("content") is not None else None
        category, tags, names = _category(arguments), _tags(arguments), _names(arguments)
        delta = _number(arguments, "trust_delta", 0.0, -1.0, 1.0)
        if content is None and category is None and tags is None and not names and not delta:
            raise FactError("There is nothing to update: set content, category, tags, entities or trust_delta.")
        fact = self._store.update(
            _fact_id(arguments), content=content, category=category, tags=tags, entities=names or None,
            trust_delta=delta,
        )  # fmt: skip
        return {"updated": True, "fact_id": fact.fact_id, "trust_score": fact.trust, "entities": list(fact.entities)}

    def _remove(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        fact_id = _fact_id(arguments)
        if not self._store.remove(fact_id):
            return {"removed": False, "error": f"There is no fact {fact_id}."}
        return {"removed": True, "fact_id": fact_id}

    def _list(self, arguments: Mapping[str, Any], provenance: Provenance) -> JsonObject:
        filters = self._filter(arguments, min_trust=0.0)
        facts = self._store.list_facts(category=filters.category, min_trust=filters.min_trust, limit=filters.limit)
        return {"facts": [fact.as_data() for fact in facts], "count": len(facts)}

    def _feedback(self, arguments: Mapping[str, Any]) -> JsonObject:
        helpful = _choice(arguments, "action", _RATINGS) == "helpful"
        before, fact = self._store.rate(_fact_id(arguments), helpful)
        return {
            "fact_id": fact.fact_id, "old_trust": before, "new_trust": fact.trust, "helpful_count": fact.helpful_count
        }  # fmt: skip

    def _filter(self, arguments: Mapping[str, Any], min_trust: float | None = None) -> FactFilter:
        lowest_trust = _number(arguments, "min_trust", self._min_trust if min_trust is None else min_trust, 0.0, 1.0)
        limit = _number(arguments, "limit", 10, 1, _MAX_INTEGER)
        return FactFilter(_category(arguments), lowest_trust, min(_MAX_RESULTS, int(limit)))

    def _results(self, hits: list[FoundFact]) -> JsonObject:
        self._store.count_retrieved(hit.fact.fact_id for hit in hits)
        return {"results": [hit.as_data() for hit in hits], "count": len(hits)}

    def _other_names(self, names: list[str]) -> JsonObject:
        """The entities that the names were matched with, if their names differ."""
        matched = {name: [known.name for known in self._retriever.resolve(name)] for name in names}
        other = {name: known for name, known in matched.items() if [key_of(match) for match in known] != [key_of(name)]}
        return {"taken_for": other} if other else {}


def _schema(name: str, description: str, properties: JsonObject, required: list[str]) -> JsonObject:
    return {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": required},
    }


def _choice(arguments: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or value not in choices:
        raise FactError(f"{name} must be one of {', '.join(choices)}, not {_short(value)}.")
    return value


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if value is None:
        raise FactError(f"{name} is missing.")
    if not isinstance(value, str):
        raise FactError(f"{name} must be text, not {_short(value)}.")
    value = _storable(value)
    if not value.strip():
        raise FactError(f"{name} is empty.")
    return value


def _query(arguments: Mapping[str, Any]) -> str:
    query = _text(arguments, "query")
    if len(query) > _MAX_QUERY_CHARS:
        raise FactError(f"query has more than {_MAX_QUERY_CHARS} characters; use a few words.")
    return query


def _about(arguments: Mapping[str, Any]) -> str:
    return "" if arguments.get("query") in (None, "") else _query(arguments)


def _name(arguments: Mapping[str, Any]) -> str:
    return _check_name(_text(arguments, "entity"))


def _names(arguments: Mapping[str, Any]) -> list[str]:
    value = arguments.get("entities")
    if value is None:
        return []
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise FactError(f"entities must be a list of names, not {_short(value)}.")
    names = {key_of(name): _check_name(_storable(name)) for name in value if name.strip()}
    if len(names) > MAX_ENTITIES:
        raise FactError(f"entities has {len(names)} names; a fact has at most {MAX_ENTITIES}.")
    return list(names.values())


def _check_name(name: str) -> str:
    name = " ".join(name.split())
    if not key_of(name) or len(name) > MAX_NAME_CHARS:
        raise FactError(f"{_short(name)} is not a name: it must have letters, and at most {MAX_NAME_CHARS} characters.")
    return name


def _category(arguments: Mapping[str, Any]) -> str | None:
    return None if arguments.get("category") in (None, "") else _choice(arguments, "category", CATEGORIES)


def _tags(arguments: Mapping[str, Any]) -> list[str] | None:
    value = arguments.get("tags")
    if value is None:
        return None
    tags = [value] if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise FactError(f"tags must be words separated by commas, not {_short(value)}.")
    if sum(map(len, tags)) > _MAX_TAGS_CHARS:
        raise FactError(f"tags has more than {_MAX_TAGS_CHARS} characters.")
    return [_storable(tag) for tag in tags]


def _fact_id(arguments: Mapping[str, Any]) -> int:
    value = arguments.get("fact_id")
    if value is None:
        raise FactError("fact_id is missing.")
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_INTEGER:
        raise FactError(f"fact_id must be the number of a fact, not {_short(value)}.")
    return value


def _number(arguments: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = arguments.get(name)
    if value is None:
        return default
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        between = f"at least {low:g}" if high == _MAX_INTEGER else f"between {low:g} and {high:g}"
        raise FactError(f"{name} must be a number {between}, not {_short(value)}.")
    return number


def _storable(text: str) -> str:
    """The text without unpaired surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _short(value: Any) -> str:
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return _storable(shorten_end(shown, 60))
