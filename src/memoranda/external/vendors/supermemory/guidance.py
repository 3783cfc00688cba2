"""The texts about this memory that a model reads."""

from memoranda.external.vendors.vendor_guidance import build_guidance

RECALL = (
    "Memories of earlier conversations that match a message are added to it; at times also what is known of the user."
)
TOOLS = (
    "Use supermemory_search to search these memories, supermemory_profile for what is known of the user, "
    "supermemory_store for what should be remembered, and supermemory_forget for what is wrong or outdated."
)

STORE_TOOL = "Store a fact, a preference or a decision in long-term memory."
SEARCH_TOOL = "Search long-term memory by meaning."
FORGET_TOOL = "Remove one memory: the one with this id, or the one that matches the query best."
PROFILE_TOOL = "What long-term memory knows about the user: lasting facts and recent ones."
CONTENT = "What to remember, in full sentences."
METADATA = "Labels: names with texts, numbers or true and false."
QUERY = "What to search for."
LIMIT = "Maximum number of results."
FORGET_ID = "The id of a memory, from supermemory_search."
FORGET_QUERY = "Words of the memory, if its id is not known."
PROFILE_QUERY = "Also search for this."
CONTAINER = "Which container to use; without it, the user's own."


def system_prompt(mode: str) -> str:
    """The block for a system prompt in a mode."""
    return build_guidance(mode, "# Supermemory", RECALL, TOOLS)
