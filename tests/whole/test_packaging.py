"""The built wheel: it runs alone, and its words suit people without a checkout.

`make torture` tries it on every Python of this machine.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.timing import GIVE_UP

ROOT = Path(__file__).parents[2]
# What only people with a clone have.
_CHECKOUT = re.compile(rf"{re.escape(str(ROOT))}|\.venv\b|\bmake (?:run|test|all)\b|\ba checkout\b|Traceback")
_DEPENDENCIES = ("click", "prompt_toolkit", "python-dotenv", "rich", "ruamel.yaml", "tomlkit")
_COMMANDS = (
    ["--version"],
    ["--help"],
    ["setup", "--yes"],
    ["remember", "The staging database is called heron."],
    ["memory", "list"],
    ["memory", "log"],
    ["import", "jsonl", "--source", "{demo}", "--yes"],
    ["search", "how did we fix the deadlocks?"],
    ["recall", "heron"],
    ["sessions", "list"],
    ["sessions", "stats"],
    ["config", "list"],
    ["install"],
    ["provider", "list"],
    ["completion", "bash"],
    ["doctor"],
    ["demo"],
)


def _find_python(version: str) -> str:
    """A program of a version of Python that can run the package; skips the test if there is none."""
    beside = sorted(Path(sys.executable).resolve().parent.parent.parent.glob("*/bin/python3"))
    for program in (sys.executable, shutil.which(f"python{version}"), *map(str, beside)):
        question = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        if program is not None:
            asked = subprocess.run([program, "-c", question], capture_output=True, text=True, check=False)
            if asked.stdout.strip() == version:
                return program
    pytest.skip(f"Python {version} is not installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    build = f"import uv_build; uv_build.build_wheel({str(directory)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, env=environment, check=True, timeout=GIVE_UP)
    return next(directory.glob("*.whl"))


def _install(python: str, wheel: Path, directory: Path) -> Path:
    """An environment with the wheel and the packages that it declares, and nothing else; returns its programs."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(directory)], check=True, timeout=GIVE_UP)
    pip = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"), "--disable-pip-version-check"]
    # Python compiles what a command uses.
    install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, timeout=GIVE_UP, cwd="/")
    packages = next(directory.glob("lib/python*/site-packages"))
    # Copied from the environment of the tests, because a test downloads nothing.
    # wcwidth belongs to prompt_toolkit, the others to rich.
    for name in (*_DEPENDENCIES, "wcwidth", "markdown-it-py", "mdurl", "pygments"):
        for file in distribution(name).files or ():
            if file.suffix in (".py", ".typed") or file.name == "METADATA":
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(str(file.locate())), packages / file)
    return directory / "bin"


_OWN_VERSION = sys.version_info[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "version",
    [pytest.param(f"3.{minor}", marks=() if minor == _OWN_VERSION else pytest.mark.torture) for minor in range(11, 16)],
)
def test_the_wheel_runs_alone_in_the_root_directory(version: str, wheel: Path, tmp_path: Path) -> None:
    """Every command works without a checkout, a variable or another package, and mentions none of them."""
    programs = _install(_find_python(version), wheel, tmp_path / "environment")
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path / "user"), "LANG": "C.UTF-8"}
    demo = str(next((tmp_path / "environment").glob("lib/python*/site-packages/memoranda/cli/demo.jsonl")))
    for words in _COMMANDS:
        result = subprocess.run(
            ["memoranda", *(word.format(demo=demo) for word in words)], cwd="/", env=environment, timeout=GIVE_UP,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        shown = result.stdout + result.stderr
        assert result.returncode == 0, (words, shown)
        assert shown
        assert _CHECKOUT.search(shown) is None, (words, shown)


def test_the_dependencies_of_the_test_are_those_of_the_package() -> None:
    """The test above installs what pyproject.toml declares, no more and no less."""
    declared = re.search(r"^dependencies = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert tuple(re.findall(r'"([\w.-]+?)>=', declared[1])) == _DEPENDENCIES


@pytest.mark.slow
def test_no_message_of_the_program_names_a_checkout() -> None:
    """Neither its directory for packages nor the commands of its makefile."""
    sources = (ROOT / "src").rglob("*.py")
    assert [path.name for path in sources if re.search(r"\.venv/|\bmake (?:run|test)\b", path.read_text("utf-8"))] == []


def _pins(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    return set(re.findall(r"^(\S+==\S+)", text, flags=re.MULTILINE))


def test_running_from_a_clone_installs_only_what_running_needs() -> None:
    """`make run` reads the small locks only; `make test` adds the rest in the same versions."""
    steps = {
        goal: subprocess.run(
            ["make", "--dry-run", "--always-make", goal], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for goal in ("run", "test")
    }
    assert "requirements/run.lock" in steps["run"] and "dev.lock" not in steps["run"]
    assert "requirements/run.lock" in steps["test"] and "dev.lock" in steps["test"]
    names = {pin.partition("==")[0] for pin in _pins("run")}
    assert {re.sub(r"[-_.]+", "-", name) for name in _DEPENDENCIES} <= names
    assert not names & {"pytest", "mypy", "ruff", "hypothesis"}
    assert _pins("run") | _pins("build") <= _pins("dev")
