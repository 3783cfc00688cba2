"""The list of skills for a system prompt: names and what each is for, in a fixed room."""

from collections.abc import Sequence
from itertools import accumulate

from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.skills.catalogue import Catalogue
from memoranda.support.shorten import shorten_end

_HEADING = "# Skills\n\nProcedures for recurring work. Read one with `skill_view` before you do what it is for."
_LONGEST_LINE = 400


def render_skill_list(catalogue: Catalogue, most: int) -> str:
    """One line per skill, by name, in at most `most` characters; where room ends, names alone, or how many more."""
    names = [skill.name for skill in catalogue.skills]
    described = _described(names, [skill.description for skill in catalogue.skills])
    room = most - len(_HEADING)
    lines = _fitting(names, described, room) if names and room > 0 else []
    return "\n".join([_HEADING, *lines]) if lines else ""


def _fitting(names: Sequence[str], described: Sequence[str], room: int) -> list[str]:
    bare = [f"- {name}" for name in names]
    # What the names from each place on take, each with its line end.
    needed = list(accumulate((len(line) + 1 for line in reversed(bare)), initial=0))[::-1]
    lines: list[str] = []
    for place, line in enumerate(described):
        if len(line) + 1 + needed[place + 1] <= room:
            lines.append(line)
        elif needed[place] <= room:
            lines.append(bare[place])
        else:
            more = f"- ({len(names) - place} more: call `skills_list`)"
            if len(bare[place]) + 1 + len(more) + 1 > room:
                return [*lines, more] if len(more) + 1 <= room else lines
            lines.append(bare[place])
        room -= len(lines[-1]) + 1
    return lines


def _described(names: Sequence[str], descriptions: Sequence[str]) -> list[str]:
    """The lines of the list, a description that the scanner objects to replaced by a placeholder."""
    described = zip(names, descriptions, strict=True)
    lines = [shorten_end(f"- {name}: {escape_tags(text)}", _LONGEST_LINE) for name, text in described]
    for passage in withhold_passages("\n".join(lines)).passages:
        for place in range(passage.first_line, passage.first_line + passage.text.count("\n") + 1):
            lines[place] = f"- {names[place]}: {passage.placeholder}"
    return lines
