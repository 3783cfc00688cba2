"""A prompt's sections stand in the order of how slowly they change."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.agent.prompt.assembly import ORDER, Section, assemble, restore_prompt


def test_the_order_is_fixed_whatever_order_sections_come_in() -> None:
    """Identity first, the platform last."""
    sections = [Section("date", "d"), Section("identity", "i"), Section("memory", "m"), Section("platform", "p")]
    assert {assemble(each).text for each in permutations(sections)} == {"i\n\nm\n\nd\n\np"}


def test_sections_of_one_name_keep_their_order() -> None:
    """MEMORY.md before USER.md."""
    assert assemble([Section("memory", "one"), Section("memory", "two")]).text == "one\n\ntwo"


def test_blank_sections_leave_no_trace() -> None:
    """Not even an empty line."""
    prompt = assemble([Section("identity", "i"), Section("skills", " \n"), Section("date", "d")])
    assert prompt.text == "i\n\nd" and [section.name for section in prompt.sections] == ["identity", "date"]


@pytest.mark.slow
@given(st.lists(st.builds(Section, st.sampled_from(ORDER), st.text(max_size=20))))
def test_equal_sections_give_equal_prompts_and_fingerprints(sections: list[Section]) -> None:
    """And a stored prompt has the fingerprint of the one that was stored."""
    one, other = assemble(sections), assemble(list(sections))
    assert one == other and one.fingerprint == restore_prompt(one.text).fingerprint
    assert assemble([*sections, Section("date", "another day")]).fingerprint != one.fingerprint
