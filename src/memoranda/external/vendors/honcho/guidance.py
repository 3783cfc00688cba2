"""What the system prompt says about Honcho."""

from memoranda.external.vendors.vendor_guidance import build_guidance

_RECALL = "What it knows about this user and their earlier conversations is shown with their messages."
_TOOLS = (
    "Tools: honcho_profile (card of key facts), honcho_search (excerpts of what was said), honcho_context (all about"
    " this conversation), honcho_reasoning (a model answers a question about the user; slow), honcho_conclude (store,"
    " list or delete a lasting fact)."
)


def system_prompt(mode: str) -> str:
    """The block for a recall mode."""
    return build_guidance(mode, "Honcho models the user across conversations.", _RECALL, _TOOLS)
