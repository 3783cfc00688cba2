"""The texts about this memory that a model reads."""

SYSTEM_PROMPT = """\
# Facts
Long-term facts are stored on this machine. Relevant ones are added to your turn, with their age and trust.
Use fact_store to add a lasting fact (one plain sentence that names who or what it is about), to search for more, to ask
about one entity (probe, related) or several at once (reason), and to find facts that contradict each other. Update or
remove outdated facts. Say with fact_feedback whether a recalled fact helped; this raises or lowers its trust."""

STORE = """\
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

FEEDBACK = """\
Say whether a fact that you recalled helped. Helpful facts gain trust and rank higher; unhelpful or wrong ones lose \
trust and are eventually no longer recalled."""

ACTION = "What to do."
CONTENT = "The fact, in one sentence. For add and update."
QUERY = "Words to look for. For search; with probe and reason, facts about these words come first."
ENTITY = "A name. For probe and related."
ENTITIES = (
    "Names. For reason: a fact must be about all of them. For add and update: what the fact is about, if its text is "
    "unclear."
)
FACT_ID = "The number of a fact. For update and remove."
RATED = "The number of the fact."
CATEGORY = "Kind of fact. For add (default general) and update; elsewhere only facts of this kind are returned."
TAGS = (
    "Words that the fact does not have and that a question for it may have, separated by commas, 8 to 15: what kind of "
    "thing it is, everyday words for it, what it is used for or matters for. For add and update."
)
TRUST_DELTA = "Change of trust, between -1 and 1. For update."
MIN_TRUST = "Omit facts with less trust (default {default:g}; for list 0)."
LIMIT = "Maximum number of results (default 10)."
RATING = "helpful: the fact was right and useful. unhelpful: it was wrong, outdated or irrelevant."
