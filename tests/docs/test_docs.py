"""The documentation says what is true: reference compared with the code, examples run, links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from memoranda.external.loading.discovery import BUNDLED
from memoranda.memory.curated.journal import MemoryAction, MemoryChange
from memoranda.memory.curated.operations import MemoryRefusalReason
from memoranda.safety.dangerous_commands import COMMAND_RULES
from memoranda.safety.hidden_characters import SEVERITIES as CHARACTER_SEVERITIES
from memoranda.safety.markup import MARKUP_RULES
from memoranda.safety.phrase_rules import RULES
from tests.docs import reference
from tests.docs.pages import PAGES, ROOT, fences, packages_of, run_python_of
from tests.forked import forking

pytestmark = pytest.mark.slow

OVERVIEW = ROOT / "docs" / "how-to" / "use-an-external-memory.md"
# Each page is a program. The everyday run starts the first ones that a reader meets.
_EVERYDAY = ("README.md",)
_named = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_command_line_reference_is_the_help_of_the_commands() -> None:
    """`make reference` was run after the last change."""
    for name, page in reference.command_line().items():
        assert (reference.DOCS / "reference" / name).read_text() == page


def test_every_row_of_a_table_has_as_many_cells_as_its_header() -> None:
    """A row that was moved from another table does not fit, and a page shows it cut off or torn."""
    uneven = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
            rows = table.splitlines()
            cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
            uneven += [f"{page.name}: {row}" for row, count in zip(rows, cells, strict=True) if count != cells[0]]
    assert uneven == []


def test_the_generated_parts_of_the_reference_are_up_to_date() -> None:
    """Settings, tool description and schema are those of the code."""
    for name in reference.MARKED:
        text = (reference.DOCS / "reference" / name).read_text()
        assert text == reference.with_generated_parts(name, text)


def test_every_refusal_reason_is_documented() -> None:
    """In the reference of the tool."""
    text = (reference.DOCS / "reference" / "memory-tool.md").read_text()
    assert [reason for reason in get_args(MemoryRefusalReason) if f"`{reason}`" not in text] == []


def test_every_field_and_action_of_the_journal_is_documented() -> None:
    """In the reference of the files."""
    text = (reference.DOCS / "reference" / "files.md").read_text()
    names = [*MemoryChange.__dataclass_fields__, *get_args(MemoryAction)]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_finding_of_the_scanner_is_documented() -> None:
    """Each id that the source can yield stands in the reference, and no other."""
    sources = "".join(path.read_text() for path in (ROOT / "src" / "memoranda" / "safety").glob("*.py"))
    page = (reference.DOCS / "reference" / "scanner.md").read_text()
    documented = set(re.findall(r"`([a-z_]+)`", "".join(line for line in page.splitlines() if line.startswith("| `"))))
    named = {rule.id for rule in (*RULES, *COMMAND_RULES, *MARKUP_RULES)} | set(CHARACTER_SEVERITIES)
    named |= {
        "html_comment_injection",
        "comment_injection",
        "secret_in_clear",
        "credential_file",
        "hidden_text",
        "learned_injection",
    }
    assert documented == named
    assert all(f'"{name}"' in sources for name in documented)


def test_the_documentation_stays_small_enough_to_scan() -> None:
    """At most 110 pages besides the decisions, and 2,500 words on each page."""
    pages = list((ROOT / "docs").rglob("*.md"))
    assert sum(page.parent.name != "decisions" for page in pages) <= 110
    words = {page.name: sum(any(map(str.isalnum, word)) for word in page.read_text().split()) for page in pages}
    assert {name: count for name, count in words.items() if count > 2_500} == {}


@_named
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    """Relative links name files that exist."""
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert broken == []


@forking
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.name in _EVERYDAY else pytest.mark.slow)
        for page in PAGES
        if fences(page, "python") and not packages_of(page)
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, one after the other, on a home of their own."""
    run_python_of(page, tmp_path)


@cache
def _commands() -> set[tuple[str, ...]]:
    return set(reference.command_paths())


@_named
def test_every_command_in_a_page_exists(page: Path) -> None:
    """Words that follow `memoranda` in a shell block name a command of the program."""
    known = _commands()
    nouns = {path[0] for path in known if path}
    for line in "\n".join(fences(page, "bash")).replace("\\\n", "").splitlines():
        words = [word for word in shlex.split(line, comments=True) if not word.startswith("-")]
        if not words or Path(words[0]).name != "memoranda":
            continue
        start = next((index for index, word in enumerate(words) if word in nouns), None)
        assert start is not None, line
        assert tuple(words[start : start + 2]) in known or (words[start],) in known - {("memory",), ("config",)}, line


@pytest.mark.parametrize(
    ("tutorial", "printed"),
    [
        ("first-memory.md", ["Project uses pytest with xdist.", "Undid change 2 (add) in USER.md."]),
        (
            "a-week-with-your-memory.md",
            [
                *("time zone: Europe/Lisbon", "1 note,", "memory: same", "memory: contained", "Undid change "),
                "Since yesterday the build needs Node 22. [20",
                "Nothing to tidy up.",
            ],
        ),
    ],
)
def test_the_shell_commands_of_the_tutorials_run(tmp_path: Path, tutorial: str, printed: list[str]) -> None:
    """As they stand, in an empty directory with the installed command on the path."""
    script = "set -e\n" + "\n".join(fences(ROOT / "docs" / "tutorial" / tutorial, "bash"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORANDA")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert [text for text in printed if text not in result.stdout] == []


def test_every_file_that_the_architecture_names_exists() -> None:
    """A bare file name stands for one in several folders."""
    named = re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)`", (ROOT / "ARCHITECTURE.md").read_text())
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT / "src" / "memoranda", ROOT))]
    anywhere = {path.name for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"))}
    assert [name for name in missing if "/" in name or name not in anywhere] == []


def test_every_bundled_provider_is_in_the_overview_and_has_a_page() -> None:
    """With what it costs and what leaves the machine; the bundled vendor's page is linked."""
    rows = [line.split("|")[1:-1] for line in OVERVIEW.read_text().splitlines() if line.startswith("|")]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    for provider in BUNDLED:
        page = f"use-{provider.name}.md"
        name = f"[`{provider.name}`]({page})" if ".vendors." in provider.reference else f"`{provider.name}`"
        assert all(cells.get(name, [""])), f"add a row for {provider.name} to docs/how-to/use-an-external-memory.md"
        assert len(cells[name]) == 4
