"""At the start of a session: what is remembered, as a system prompt would show it."""

from memoranda.adapters.hosts.hooks import guidance
from memoranda.app import Memory

# Hosts show longer text only in part.
_MOST_CHARS = 9_500


def remembered(memory: Memory) -> str:
    """The notes and the profile, screened where they are kept; "" when nothing is remembered."""
    store = memory.services.curated_for(memory.user)
    store.load_from_disk()
    blocks = [store.format_for_system_prompt(target) for target in store.settings.targets()]
    text = "\n\n".join(block for block in blocks if block)
    if not text:
        return ""
    cut = "\n[cut here: more is remembered]"
    whole = f"{guidance.REMEMBERED}\n\n{text}"
    return whole if len(whole) <= _MOST_CHARS else whole[: _MOST_CHARS - len(cut)] + cut
