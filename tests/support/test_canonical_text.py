"""Text as it is stored and shown."""

from hypothesis import example, given
from hypothesis import strategies as st

from memoranda.support.canonical_text import cut_short


@given(st.text(max_size=30), st.integers(3, 20), st.sampled_from(["…", " …", "..."]))
@example("ab cd", 5, "…")
@example("ab cd", 4, "…")
def test_a_text_is_cut_only_when_it_is_too_long_and_says_so(text: str, most: int, mark: str) -> None:
    """One that fits is left as it is; of another there is as much as fits before the mark."""
    shown = cut_short(text, most, mark)
    assert shown == text if len(text) <= most else shown.endswith(mark)
    assert len(shown) == min(len(text), most)
    assert text.startswith(shown.removesuffix(mark)) or shown == text
