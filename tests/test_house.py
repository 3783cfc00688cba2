"""The rules of the house: import directions, sizes, words, and what must not be in the repository."""

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

# `make lint` runs them, too: they parse all sources, which takes as long as a hundred other tests.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))

# All lines of the package together. The number may only shrink: who adds lines finds some that can leave.
MOST_LINES = 133_002
MOST_LINES_PER_FILE = 700
FEWEST_LINES_PER_FILE = 60
MOST_LINES_PER_FUNCTION = 60
MAX_PUBLIC_MEMBERS = 30
# `SessionDB` has the method names that its users know; each delegates to a part of the store.
LARGE_CLASSES = {"memoranda.home.session_db.SessionDB"}
# Files and functions that are larger than the house allows, with their size today. The list may only shrink:
# a smaller size must be noted here, and no entry may be added.
EXCEPTIONS: dict[str, int] = {}


# Where a statement has other statements. What a rule looks for is never inside of an expression, and a file has ten
# times as many expressions as statements.
_INNER = ("body", "handlers", "orelse", "finalbody", "cases")


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field in _INNER:
        inner = getattr(node, field, None)
        for statement in inner if isinstance(inner, list) else ():
            yield from _statements(statement)


@cache
def _parsed(path: Path) -> list[ast.AST]:
    return list(_statements(ast.parse(path.read_text("utf-8"))))


@pytest.fixture(scope="module", autouse=True)
def _parse_all_sources_once() -> Iterator[None]:
    # The collector would look through millions of nodes again and again.
    gc.disable()
    for path in SOURCES:
        _parsed(path)
    yield
    _parsed.cache_clear()
    gc.enable()


def _functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in _parsed(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _docstring(path: Path) -> str | None:
    module = _parsed(path)[0]
    assert isinstance(module, ast.Module)
    return ast.get_docstring(module)


def _sizes() -> dict[str, int]:
    sizes: dict[str, int] = {}
    for path in SOURCES:
        name = str(path.relative_to(ROOT))
        lines = path.read_text("utf-8").count("\n")
        if lines > MOST_LINES_PER_FILE:
            sizes[name] = lines
        for function in _functions(path):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > MOST_LINES_PER_FUNCTION:
                sizes[f"{name}:{function.name}"] = length
    return sizes


def test_files_and_functions_stay_small() -> None:
    """What is over the size must be a known exception of exactly its present size."""
    assert _sizes() == EXCEPTIONS


def test_the_package_does_not_grow() -> None:
    """All lines of its Python files, empty ones and comments too, are within a budget that only shrinks."""
    assert sum(path.read_bytes().count(b"\n") for path in SOURCES) <= MOST_LINES


def _own_members(node: ast.ClassDef) -> set[str]:
    """The public names in the body of a class: methods, values and fields."""
    names = set()
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
    return {name for name in names if not name.startswith("_")}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)


def _classes() -> dict[str, ast.ClassDef]:
    """Every class, by its module and name."""
    nodes = ((path, node) for path in SOURCES for node in _parsed(path))
    return {f"{_module(path)}.{node.name}": node for path, node in nodes if isinstance(node, ast.ClassDef)}


def _imported(module: str) -> dict[str, str]:
    """Where the names come from that a module imports."""
    nodes = _parsed(ROOT / "src" / f"{module.replace('.', '/')}.py")
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _public_members(name: str, classes: dict[str, ast.ClassDef]) -> set[str]:
    """The public names of a class and of its bases, if these are ours."""
    if name not in classes:
        return set()
    module = name.rpartition(".")[0]
    bases = [ast.unparse(base).partition("[")[0] for base in classes[name].bases]
    imported = _imported(module) if bases else {}
    places = (imported.get(base, f"{module}.{base}") for base in bases)
    return _own_members(classes[name]).union(*(_public_members(place, classes) for place in places))


def test_no_class_has_too_many_public_members() -> None:
    """Suites of tests excepted: their members are their content."""
    classes = _classes()
    large = {name for name in classes if len(_public_members(name, classes)) > MAX_PUBLIC_MEMBERS}
    assert {name for name in large if not name.startswith("memoranda.testing.")} == LARGE_CLASSES


# A small file that one other file uses belongs to that file, with these exceptions. The list may only shrink.
SMALL_FILES = {
    # Loaded only where an optional package is there, or is missing.
    "memory/record/server_health.py",
    "service/mounts.py",
}
# They mean the same in every folder, so a reader looks for them.
SMALL_NAMES = {"__init__.py", "__main__.py", "guidance.py", "schema.py", "settings.py", "tool.py", "vendor.py"}
# Rows of a list: each is a subject of its own, however small.
SMALL_FOLDERS = ("memoranda/search/legs/", "memoranda/service/viewer/pages/")


def _importers() -> dict[str, set[Path]]:
    """The files that import each module, by its name."""
    found: dict[str, set[Path]] = {}
    for path in SOURCES:
        for node in _parsed(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    found.setdefault(name, set()).add(path)
    return found


def _modules_in_texts() -> set[str]:
    """The modules that are loaded by a name in a table: commands, readers of importers."""
    names = {name for path in SOURCES for name in re.findall(r'"(\w+(?:\.\w+)+)[":]', path.read_text("utf-8"))}
    return names | {f"memoranda.importers.{name}" for name in names}


def test_a_small_file_has_several_users() -> None:
    """Otherwise a reader follows a name into a file that could have been a few lines of the one at hand."""
    importers, loaded_by_name = _importers(), _modules_in_texts()
    small = set()
    for path in SOURCES:
        relative = path.relative_to(ROOT / "src")
        name = _module(path)
        is_row = relative.as_posix().startswith(SMALL_FOLDERS) or name in loaded_by_name
        if is_row or path.name in SMALL_NAMES or path.read_text("utf-8").count("\n") >= FEWEST_LINES_PER_FILE:
            continue
        if len(importers.get(name, ())) < 2:
            small.add(relative.relative_to("memoranda").as_posix())
    assert small == SMALL_FILES, "put a small file into the one file that uses it"


def test_every_line_imports_only_from_lines_below() -> None:
    """The contracts in pyproject.toml hold, lazy and type-only imports included: layers for every module, no cycles."""
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_no_folder_is_named_for_nothing() -> None:
    """utils, helpers and their like say nothing about what is inside."""
    vague = {"utils", "helpers", "common", "core", "misc", "base", "manager2"}
    # Relative: the checkout itself may have any name.
    named = {path: path.relative_to(ROOT).with_suffix("").parts for path in SOURCES}
    assert [path for path, parts in named.items() if vague & set(parts)] == []


def test_no_exception_is_swallowed_in_silence() -> None:
    """A broad except does something, and is one of the few that are meant."""
    broad = []
    for path in SOURCES:
        for node in _parsed(path):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
            ):
                assert not all(isinstance(step, ast.Pass | ast.Continue) for step in node.body), path
                ends_in_raise = isinstance(node.body[-1], ast.Raise)
                if not ends_in_raise:
                    broad.append(path.relative_to(ROOT / "src").as_posix())
    # The last line of defence of each tool, and the seam to code that is somebody else's.
    seams = [
        "memoranda/integrations/mcp/server.py",
        "memoranda/external/guarded_call.py",
        "memoranda/external/external_memory.py",
    ]
    # A host goes on, whatever happens in a hook.
    seams.append("memoranda/cli/hooks/call.py")
    # A thread that hands whatever happened in it to the one who waits for it.
    threads = [
        "models/model_call.py",
        "agent/review/background.py",
        "service/http/workers.py",
        "api/client/async_memory.py",
    ]
    parts = ("agent/tool_dispatch", "agent/tool_functions", "memory/curated/tool", "search/tool", "memory/skills/tool")
    tools = [f"memoranda/{part}.py" for part in parts]
    assert set(broad) == {*(f"memoranda/{path}" for path in threads), *seams, *tools}


def test_only_the_configuration_reads_the_environment() -> None:
    """Everything else is told."""
    readers = [path.name for path in SOURCES if re.search(r"os\.environ|os\.getenv", path.read_text("utf-8"))]
    assert readers == ["environment.py"]


def test_every_test_says_in_a_sentence_what_is_true() -> None:
    """A docstring per test and per test module."""
    for path in TESTS:
        assert _docstring(path)
        assert [
            function.name
            for function in _functions(path)
            if function.name.startswith("test_") and not ast.get_docstring(function)
        ] == []


def test_every_module_says_what_it_is_for() -> None:
    """One sentence at the top."""
    assert [path for path in SOURCES if not _docstring(path)] == []


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def test_the_root_has_only_the_files_that_a_reader_expects() -> None:
    """Whatever a command left there by mistake is not committed."""
    expected = {".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"}
    expected |= {"SECURITY.md", "pyproject.toml", "zensical.toml"}
    assert {path.name for path in _tracked() if path.parent == ROOT} == expected


def test_no_file_names_a_package_registry() -> None:
    """Locks hold names, versions and hashes only."""
    # Written in pieces, so that this file does not hold what it looks for.
    address = re.compile(rb"index" rb"-url|https?://[^\s\"']*/simp" rb"le\b|pythonho" rb"sted")
    found = [path for path in _tracked() if address.search(path.read_bytes())]
    assert found == []


def test_every_locked_package_has_a_hash() -> None:
    """Installs are reproducible."""
    for lock in (ROOT / "requirements").glob("*.lock"):
        packages = [line for line in lock.read_text().splitlines() if line and not line.startswith((" ", "#"))]
        assert packages
        assert all(line.endswith("\\") for line in packages)
