"""The text of a vendor for the system prompt, which depends on the mode only and so never changes in a session."""


def build_guidance(mode: str, about: str, recall: str, tools: str) -> str:
    """What a model reads about a vendor: `recall` unless it has only tools, `tools` unless it has none."""
    parts = (about, recall if mode != "tools" else "", tools if mode != "context" else "")
    return "\n".join(filter(None, parts))
