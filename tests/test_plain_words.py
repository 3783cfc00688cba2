"""Plain words: the worst words of a dialect stay out, and modules are named by nouns.

Every list of exceptions here may only shrink: remove an entry that is no longer needed, and add none.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each hides who does what, or stands where the field has a word of its own: a name, resume, repair, receives.
WORST_WORDS = re.compile(
    r"\b(somebody|nobody|whoever|anew|mend(?:s|ed|ing)?|tak(?:e|es|en|ing) up again"
    r"|(?:is|are) told|hears? of|cut short)\b",
    re.IGNORECASE,
)
# Where such a word is meant: an old spelling that still works, a JSON field.
WORST_WORDS_ALLOWED = {
    "src/memoranda/cli/upkeep/doctor.py": 1,
    "src/memoranda/agent/review/evidence.py": 1,
}

# Words of the field that end in -ing and name a thing.
ING_MODULES = {
    "storage/sqlite/error_mapping.py",
    "models/anthropic/thinking.py",
    "external/holographic/encoding.py",
    "search/ranking.py",
    "safety/decoding.py",
    "safety/finding.py",
}


def _texts() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # What people say in the cases of a benchmark is data.
    cases = r"(?!benchmarks/(?:everyday/|facts/|curator/.*txt|year_wordings.txt))"
    kept = re.compile(rf"^{cases}(src/.*\.py|docs/.*\.md|benchmarks/.*\.(py|md|txt)|[A-Z]+\.md)$")
    return [name for name in listed.splitlines() if kept.match(name) and (ROOT / name).is_file()]


@pytest.mark.slow
def test_the_worst_words_are_in_no_source_and_on_no_page() -> None:
    """Except where one is meant, as often as listed."""
    found = {name: len(WORST_WORDS.findall((ROOT / name).read_text("utf-8"))) for name in _texts()}
    assert {name: count for name, count in found.items() if count} == {
        name: count for name, count in WORST_WORDS_ALLOWED.items() if count
    }


def test_modules_that_end_in_ing_are_nouns_of_the_field() -> None:
    """A module is named by the thing it contains, not by what is done with it."""
    package = ROOT / "src" / "memoranda"
    assert {path.relative_to(package).as_posix() for path in package.rglob("*ing.py")} == ING_MODULES
