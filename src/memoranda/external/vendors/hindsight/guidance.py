"""The texts about this memory that a model reads."""

from memoranda.external.vendors.vendor_guidance import build_guidance

RECALL = "Memories of earlier conversations that match a message are added to it, with their kind and date."
TOOLS = (
    "Use hindsight_recall to search these memories, hindsight_reflect for an answer that combines many of them, and "
    "hindsight_retain to store what should be remembered beyond this conversation."
)

RETAIN_TOOL = "Store information in long-term memory. Hindsight extracts facts and links entities by itself."
RECALL_TOOL = "Search long-term memory, by meaning, words, entities and time. Returns the best memories, numbered."
REFLECT_TOOL = (
    "Answer a question from all of long-term memory. Slower than hindsight_recall: a model reads many memories and "
    "writes the answer."
)
CONTENT = "The information to store, in full sentences that name who and what they are about."
CONTEXT = "A short label, such as 'user preference' or 'project decision'."
TAGS = "Tags to add, such as 'project:atlas'."
RECALL_QUERY = "What to search for."
REFLECT_QUERY = "The question."


def system_prompt(mode: str) -> str:
    """The block for a system prompt in a mode."""
    return build_guidance(mode, "# Hindsight memory", RECALL, TOOLS)
