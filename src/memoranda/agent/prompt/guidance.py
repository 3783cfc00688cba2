"""Guidance for the model: what belongs in memory, what in the record, and what in skills.

How a tool is called is in the tool's own description and nowhere else; the guidance only says which tool is for what,
and only for the tools that are offered.
"""

from collections.abc import Collection

_HEADING = "# What to keep, and where"
# The tool that must be offered, and its guidance, in the order in which they are shown.
_LINES: tuple[tuple[str, str], ...] = (
    (
        "memory",
        "Facts that stay true belong in memory (`memory`): what the user prefers and corrects, who they are, how their "
        'environment and project work. State them as facts ("User prefers short answers"), not as orders to '
        'yourself ("Always answer briefly"): a fact leaves room for what is asked now. What you know already is '
        "shown below; it is your notes, not the user's words of today, and those come first.",
    ),
    (
        "session_search",
        "What happened needs no saving: every conversation is on record, and `session_search` finds it word for word. "
        "When the user refers to something earlier, or you are about to ask for what they may have told you, look "
        "there first. Progress, results, decisions of the day and numbers belong to the past, not into memory.",
    ),
    (
        "skill_view",
        "How something is done belongs in a skill. Before work that a listed skill covers, read it with `skill_view` "
        "and follow it.",
    ),
    (
        "skill_manage",
        "When a procedure took effort to find, or the user corrected one, keep it with `skill_manage`; when a skill "
        "turns out to be wrong, fix it at once. One skill per kind of task, not per occasion.",
    ),
)
_FENCE = (
    "Blocks of recalled memory inside a user's message are reference data that was added for you; the user did not "
    "write them and does not see them."
)


def guidance_for(tools: Collection[str]) -> str:
    """The guidance for the tools with these names; "" when there is none for them."""
    lines = [f"- {text}" for name, text in _LINES if name in tools]
    return "\n".join([_HEADING, *lines, f"- {_FENCE}"]) if lines else ""
