"""The generated parts of docs/reference, made from the code: `make reference` writes them, a test compares them."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from click.testing import CliRunner

from memoranda.cli.main import GROUPS, command
from memoranda.home import config
from memoranda.memory.curated.guidance import TOOL_DESCRIPTION
from memoranda.memory.curated.tool import PARAMETERS
from memoranda.memory.record.schema import SCHEMA
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.tool import SkillTools
from memoranda.search import guidance as search_guidance
from memoranda.search.tool import PARAMETERS as SEARCH_PARAMETERS
from memoranda.service.http.routes import ROUTES
from memoranda.support.origin import Origin
from tests.docs import python_reference

DOCS = Path(__file__).parents[2] / "docs"


def command_paths(each: click.Command | None = command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command of the program as the words that call it."""
    if not isinstance(each, click.Group):
        return [path]
    context = click.Context(each)
    below = [(name, each.get_command(context, name)) for name in each.list_commands(context)]
    return [path] + [found for name, command in below for found in command_paths(command, (*path, name))]


_COMMON_OPTION = re.compile(r"^  (?:--(?:home|profile|url|json|user)|-h, --help)\b.*\n(?:   .*\n)*", re.MULTILINE)
_ABOUT_COMMON = """\
Every command takes `--home DIR`, `--profile NAME`, `--url URL` (a service instead of a home), `--json` and `--help`,
before or after its name; those that use the memory of one user take `--user NAME`, too.
Times are local, and UTC in JSON.
Exit codes: 0 done, 1 refused, not answered, or something to fix, 2 wrong usage or an unusable home, 130 interrupted.
"""


_OWN_PAGES = ("memory", "sessions", "import")
"""Commands with so many commands below them that they have a page of their own."""


def command_line() -> dict[str, str]:
    """The pages docs/reference/command-line*.md: the help of every command, by group."""
    pages = {group.lower(): [name for name in GROUPS[group] if name not in _OWN_PAGES] for group in GROUPS}
    pages |= {name: [name] for name in _OWN_PAGES}
    return {_page_of(title): _page(title, names, list(pages)) for title, names in pages.items()}


def _page_of(title: str) -> str:
    return "command-line.md" if title == next(iter(GROUPS)).lower() else f"command-line-{title}.md"


def _page(title: str, names: list[str], titles: list[str]) -> str:
    others = [f"[{other}]({_page_of(other)})" for other in titles if other != title]
    parts = [f"# Command line: {title}\n", f"{_ABOUT_COMMON}Other commands: {', '.join(others)}.\n"]
    sections: dict[str, list[tuple[str, str]]] = {}
    for path in command_paths():
        if path and path[0] in names:
            called, text = " ".join(("memoranda", *path)), _help(path)
            # Most imports differ in their names alone, and the help of `memoranda import` says what each of them does.
            # So do the hosts of hooks.
            options = text.partition("Options:\n")[2] if path[0] in ("import", "hook") else ""
            sections.setdefault(options or called, []).append((called, text))
    for (called, text), *alike in sections.values():
        parts.append(f"## {called}\n\n```text\n{text}\n```\n")
        if alike:
            parts.append(f"The same options: {', '.join(f'`{other}`' for other, _ in alike)}.\n")
    return "\n".join(parts)


def _help(path: tuple[str, ...]) -> str:
    result = CliRunner().invoke(command, [*path, "--help"], prog_name="memoranda", terminal_width=100)
    text = _COMMON_OPTION.sub("", result.output).replace("\nOptions:\n\n", "\n").rstrip()
    return text.removesuffix("Options:").rstrip()


def configuration() -> str:
    """The table of settings in docs/reference/configuration.md."""
    rows = ["| key | default | takes | environment variable | meaning |", "|---|---|---|---|---|"]
    for key in config.KEYS:
        default = json.dumps(key.default) if not isinstance(key.default, str) else f'"{key.default}"'
        rows.append(f"| `{key.name}` | `{default}` | {key.accepts} | `{key.variable}` | {key.meaning} |")
    return "\n".join(rows)


def tool_schema() -> str:
    """The parameters of the memory tool in docs/reference/memory-tool.md."""
    return f"```json\n{json.dumps(PARAMETERS, indent=2, ensure_ascii=False)}\n```"


def tool_description() -> str:
    return "\n".join(f"> {line}".rstrip() for line in TOOL_DESCRIPTION.split("\n"))


def search_parameters() -> str:
    """The parameters of session_search in docs/reference/session-search-tool.md."""
    rows = ["| parameter | type | meaning |", "|---|---|---|"]
    rows += [
        f"| `{name}` | {about['type']} | {about['description']} |"
        for name, about in SEARCH_PARAMETERS["properties"].items()
    ]
    return "\n".join(rows)


def search_description() -> str:
    return f"> {search_guidance.TOOL_DESCRIPTION}"


def tables() -> str:
    """Every table of state.db in docs/reference/schema.md."""
    parts = [f"Schema version {SCHEMA.version}."]
    for table in SCHEMA.all_tables:
        parts += [f"\n## {table.name}\n\n{table.meaning}\n", "| column | type | meaning |", "|---|---|---|"]
        parts += [
            f"| `{each.name}` | `{each.declaration().split(' ', 1)[1]}` | {each.meaning} |" for each in table.columns
        ]
    parts += ["\n## Indexes\n", "```sql", *(f"{index};" for index in SCHEMA.indexes), "```"]
    return "\n".join(parts)


def skill_tool(name: str) -> str:
    """One tool of docs/reference/skills.md: its description and its parameters."""
    tools = SkillTools(SkillStore("skills"), Origin()).definitions()
    tool = next(each for each in tools if each.name == name)
    lines = [f"> {line}".rstrip() for line in tool.description.split("\n")]
    fields = tool.parameters["properties"]
    rows = ["", "| parameter | meaning |", "|---|---|"] if fields else []
    rows += [f"| `{field}` | {about['description']} |" for field, about in fields.items()]
    return "\n".join([*lines, *rows])


def http_routes() -> str:
    """Every route of the service in docs/reference/http.md."""
    lines = ["| request | scope | what it does |", "|---|---|---|"]
    for route in ROUTES:
        marks = [f"`{field.name}`" for field in route.query]
        extras = ["`Idempotency-Key`"] if route.idempotent else []
        extras += ["`If-Match`"] if route.conditional else []
        options = f" ({', '.join([*marks, *extras])})" if marks or extras else ""
        scope = f"`{route.scope}`" if route.scope else "no key"
        lines.append(f"| `{route.method} {route.path}` | {scope} | {route.summary}{options} |")
    return "\n".join(lines)


def _signatures(*names: str) -> list[tuple[str, Callable[[], str]]]:
    return [(name.lower(), partial(python_reference.signatures, name)) for name in names]


MARKED: dict[str, list[tuple[str, Callable[[], str]]]] = {
    "configuration.md": [("settings", configuration)],
    "memory-tool.md": [("description", tool_description), ("schema", tool_schema)],
    "session-search-tool.md": [("description", search_description), ("parameters", search_parameters)],
    "python.md": [("functions", python_reference.functions), *_signatures("Memory", "Session", "Turn")],
    "python-agents.md": _signatures("Agent", "AsyncMemory", "AsyncSession", "AsyncTurn", "AsyncAgent"),
    "python-parts.md": [
        *_signatures("MemoryStore", "MemoryProvider", "Tool"),
        ("answers", python_reference.answers),
        ("exceptions", python_reference.exceptions),
    ],
    "http.md": [("routes", http_routes)],
    "schema.md": [("tables", tables)],
    "session-db.md": _signatures("SessionDB"),
    "skills.md": [
        ("skills-list", partial(skill_tool, "skills_list")),
        ("skill-view", partial(skill_tool, "skill_view")),
        ("skill-manage", partial(skill_tool, "skill_manage")),
    ],
}


def with_generated_parts(name: str, text: str) -> str:
    """A page with the text between its markers made anew."""
    for marker, make in MARKED[name]:
        begin, end = f"<!-- generated: {marker} -->\n", f"<!-- end: {marker} -->"
        head, rest = text.split(begin)
        text = head + begin + make() + "\n" + end + rest.split(end)[1]
    return text


def main() -> None:
    for name, page in command_line().items():
        (DOCS / "reference" / name).write_text(page)
    for name in MARKED:
        path = DOCS / "reference" / name
        path.write_text(with_generated_parts(name, path.read_text()))


if __name__ == "__main__":
    main()
