"""The format of SKILL.md holds for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.memory.skills.skill_text import file_problem, is_inside, name_problem, parse_skill, with_front_matter
from memoranda.support.text_file import split_front_matter

pytestmark = pytest.mark.slow

NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True).filter(lambda name: not name_problem(name))
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200).filter(
    lambda text: bool(text.split())
)


@given(NAMES, WORDS, st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_what_we_write_reads_back(name: str, description: str, body: str) -> None:
    """Name and description are those that were given, whatever signs are in them, and nothing is wrong."""
    parsed = parse_skill(with_front_matter(name, description, body))
    assert parsed.problems == ()
    assert (parsed.name, parsed.description) == (name, " ".join(description.split()))
    assert parsed.body.strip() == body.replace("\r\n", "\n").replace("\r", "\n").strip()


@given(
    st.text(max_size=400) | st.text("-: \n'\"[]{}&*!|>%@`a1\t", max_size=60).map(lambda text: f"---\n{text}\n---\nx")
)
def test_any_text_is_parsed(text: str) -> None:
    """Problems are listed; a missing description always is one."""
    parsed = parse_skill(text)
    assert parsed.description or parsed.problems


@given(st.text(max_size=200), st.text("ab: \n", max_size=50))
def test_front_matter_and_body_are_the_whole_text(body: str, front: str) -> None:
    """Nothing is lost between the two."""
    text = f"---\n{front}\n---\n{body}"
    parts = split_front_matter(text)
    assert parts is not None
    assert f"---\n{parts.front_matter}---\n{parts.body}" == text


@given(st.text(max_size=80))
def test_a_name_that_passes_stays_where_it_belongs(text: str) -> None:
    """Neither a skill's name nor a file's leads anywhere else."""
    if name_problem(text) is None:
        assert "/" not in text and "." not in text and text == text.lower()
    if file_problem(text) is None:
        assert is_inside(text) and not text.startswith(("/", ".")) and ":" not in text


def test_deep_yaml_is_a_problem_and_no_error() -> None:
    """Nesting, aliases, odd keys and odd dates."""
    for front in ("[" * 700, "a: &x [*x]", "? [1]\n: 2", "a: 2026-99-99", "!!python/object:os.system x", "a: b\na: c"):
        parsed = parse_skill(f"---\n{front}\ndescription: x\n---\nbody")
        assert parsed.problems
