"""Renders the list of skills for a system prompt: names and descriptions, within a character limit."""

from collections.abc import Sequence
from itertools import accumulate

from memoranda.memory.skills.catalogue import Catalogue
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.shorten import shorten_end

_HEADING = "# Skills\n\nProcedures for recurring work. Read one with `skill_view` before you do what it is for."
_MAX_LINE = 400


def render_skill_list(catalogue: Catalogue, max_chars: int) -> str:
    """One line per skill, sorted by name; those that do not fit are listed by name only, or just counted."""
    names = [skill.name for skill in catalogue.skills]
    described = _describe_skills(names, [skill.description for skill in catalogue.skills])
    room = max_chars - len(_HEADING)
    lines = _fit_lines(names, described, room) if names and room > 0 else []
    return "\n".join([_HEADING, *lines]) if lines else ""


def list_descriptions(rendered: str) -> tuple[str, ...]:
    """The descriptions in a list that `render_skill_list` returned."""
    lines = rendered.removeprefix(_HEADING).split("\n")
    return tuple(text for line in lines if (text := line.partition(": ")[2]))


def _fit_lines(names: Sequence[str], described: Sequence[str], room: int) -> list[str]:
    bare = [f"- {name}" for name in names]
    # How many characters the names from each index on need, line ends included.
    needed = list(accumulate((len(line) + 1 for line in reversed(bare)), initial=0))[::-1]
    lines: list[str] = []
    for index, line in enumerate(described):
        if len(line) + 1 + needed[index + 1] <= room:
            lines.append(line)
        elif needed[index] <= room:
            lines.append(bare[index])
        else:
            more = f"- ({len(names) - index} more: call `skills_list`)"
            if len(bare[index]) + 1 + len(more) + 1 > room:
                return [*lines, more] if len(more) + 1 <= room else lines
            lines.append(bare[index])
        room -= len(lines[-1]) + 1
    return lines


def _describe_skills(names: Sequence[str], descriptions: Sequence[str]) -> list[str]:
    """The lines of the list; a placeholder replaces a description with scanner findings."""
    described = zip(names, descriptions, strict=True)
    lines = [shorten_end(f"- {name}: {escape_tags(text)}", _MAX_LINE) for name, text in described]
    for passage in withhold_passages("\n".join(lines)).passages:
        for index in range(passage.first_line, passage.first_line + passage.text.count("\n") + 1):
            lines[index] = f"- {names[index]}: {passage.placeholder}"
    return lines
