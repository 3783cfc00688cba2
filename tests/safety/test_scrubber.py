"""The streaming scrubber: the table of known cases, and what holds for every text however it is cut."""

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.safety import fence, fence_tags
from memoranda.safety import fence_tags as scrubber
from memoranda.safety.fence import build_memory_context_block, sanitize_context
from memoranda.safety.fence_tags import MAX_TAG_CHARS, StreamingContextScrubber
from tests.examples import examples

O, C = "<memory-context>", "</memory-context>"  # noqa: E741
BLOCK = f"{O}\n[note line]\n\nUser likes tea\n{C}"

# Number, chunks, total that is shown. The rows are those of the reference table (Hermes Agent 0.19.0 executed).
SAME = [
    (1, [], ""),
    (2, [""], ""),
    (3, ["hello world"], "hello world"),
    (4, ["hel", "lo"], "hello"),
    (5, ["a < b and c > d"], "a < b and c > d"),
    (6, ["a <"], "a <"),
    (7, ["<", "b>bold</b>"], "<b>bold</b>"),
    (8, ["<memory>x</memory>"], "<memory>x</memory>"),
    (9, ["\n\n"], "\n\n"),
    (10, [f"{O}\nsecret\n{C}\nhi"], "\nhi"),
    (11, [f"{O}\nsecret\n{C}"], ""),
    (12, [f"before\n{O}\nsecret\n{C}\nafter"], "before\n\nafter"),
    (13, [f"x\n   {O}\nsecret\n{C}y"], "x\n   y"),
    (14, [f"\t{O}\nsecret\n{C}y"], "\ty"),
    (15, [f"{O}\r\nsecret\r\n{C}\r\nok"], "\r\nok"),
    (16, [f"{O}\na\n{C}\nmid\n{O}\nb\n{C}\nend"], "\nmid\n\nend"),
    (17, [f"{O}\na\n{C}{O}\nb\n{C}z"], "z"),
    (18, [f"{O}\na\n{C} tail"], " tail"),
    (19, [f"The tag {O} is special"], f"The tag {O} is special"),
    (23, [f"`{O}`\nuse it"], f"`{O}`\nuse it"),
    (26, [f"text {C} more"], f"text {C} more"),
    (27, [f"{C}\nmore"], f"{C}\nmore"),
    (28, ["text </memory-", "context> more"], f"text {C} more"),
    (29, ["<memory-", f"context>\nsecret\n{C}\nok"], "\nok"),
    (30, [O, "\nsecret\n", C, "\nok"], "\nok"),
    (33, [O, "\r"], ""),
    (34, [f"{O}\nsecret", "</memory-", "context>", "\nok"], "\nok"),
    (35, list(f"{O}\nsecret{C}\nok"), "\nok"),
    (36, list(f"pre\n{O}\nsecret\n{C}\npost"), "pre\n\npost"),
    (39, ["x\n<", f"memory-context>\nS\n{C}y"], "x\ny"),
    (40, ["<memory-context", ">\nS\n", C, "y"], "y"),
    (41, [f"{O}\nS</", "memory-context>y"], "y"),
    (42, ["<memory-co", "ol> thing"], "<memory-cool> thing"),
    (43, ["abc <mem", "ory lane"], "abc <memory lane"),
    (44, ["done <memory-contex"], "done <memory-contex"),
    (45, [f"{O}\nS</memory-", "banana\nmore\n", C, "ok"], "ok"),
    (47, ["line one\n", O, "\nS\n", C, "end"], "line one\nend"),
    (49, ["  ", O, "\nS\n", C, "end"], "  end"),
    (50, ["word", "\n", O, "\nS\n", C, "end"], "word\nend"),
    (54, [f"hello\n{O}\nsecret forever"], "hello\n"),
    (55, [f"hello\n{O}\n", "secret", "more secret"], "hello\n"),
    (56, [f"{O}\nsecret</memory-contex"], ""),
    (57, [f"{O}\nsecret"], ""),
    (58, ["<MEMORY-CONTEXT>\nS\n</MEMORY-CONTEXT>ok"], "ok"),
    (59, ["<Memory-Context>\nS\n</mEmOrY-cOnTeXt>ok"], "ok"),
    (60, ["<MEM", "ory-CONtext>\nS\n</MEMORY-", "context>ok"], "ok"),
    (
        66,
        ["&lt;memory-context&gt;\nS\n&lt;/memory-context&gt;ok"],
        "&lt;memory-context&gt;\nS\n&lt;/memory-context&gt;ok",
    ),
    (67, ["[a note]\nS"], "[a note]\nS"),
    (68, [BLOCK, "\n\nYou like tea."], "\n\nYou like tea."),
    (70, list(f"{BLOCK}\n\nYou like tea."), "\n\nYou like tea."),
    (71, [f"{O}\nA\n</memory-con", "text>\n<memory", f"-context>\nB\n{C}", "done"], "\ndone"),
    (75, [f"你好🙂\n{O}\n秘密\n{C}\n再见"], "你好🙂\n\n再见"),
    (79, [f"\v{O}\nS\n{C}x"], "\vx"),
    # Showing an example in a code block would be nice; a model that quotes its own context there is likelier.
    (74, [f"```\n{O}\nexample\n{C}\n```\n"], "```\n\n```\n"),
]
MORE_ON_ITS_LINE = "an opener need not be the only text on its line"
COUNTED = "nested tags are counted"
SPELLED = "the tag may be spelled with blanks, attributes, underscores and other dashes"
OFFSETS = "matching never changes the length of the text"
UNENDED = "an opener at the start of a line that never closes is an unterminated fence"
OTHER = [
    (20, [f"see {O}\nnot hidden\n{C} end"], "see  end", MORE_ON_ITS_LINE),
    (21, [f"{O}secret{C} ok"], " ok", MORE_ON_ITS_LINE),
    (22, [f"{O} \nsecret\n{C} ok"], " ok", MORE_ON_ITS_LINE),
    (24, [f"- {O}\nsecret\n{C}"], "- ", MORE_ON_ITS_LINE),
    (25, [f"> {O}\nsecret\n{C}"], "> ", MORE_ON_ITS_LINE),
    (31, [O, "secret"], "", UNENDED),
    (32, [O], "", UNENDED),
    (46, ["word <memory-", "context>\nsecret\n", C], "word ", MORE_ON_ITS_LINE),
    (48, ["line one ", O, "\nS\n", C, "end"], "line one end", MORE_ON_ITS_LINE),
    (51, [f"{O}\nA\n{O}\nB\n{C}\nleft\n{C}\nend"], "\nend", COUNTED),
    (52, [f"{O}\nA{O}\nB", C, "rest", C, "end"], "end", COUNTED),
    (53, [f"{O}{O}\nS\n{C}e"], "", f"{COUNTED}, so the outer fence is unterminated"),
    (61, [f"< memory-context >\nS\n{C}ok"], "ok", SPELLED),
    (62, [f"{O}\nS\n</ memory-context >\nvisible?"], "\nvisible?", SPELLED),
    (63, [f"<memory-context id=1>\nS\n{C}ok"], "ok", SPELLED),
    (64, ["<memory_context>\nS\n</memory_context>ok"], "ok", SPELLED),
    (65, ["<memory‑context>\nS\n</memory‑context>ok"], "ok", SPELLED),
    (72, [f"ok\n{O}"], "ok\n", UNENDED),
    (73, [O, f" \nS\n{C}"], "", MORE_ON_ITS_LINE),
    (76, [f"İ\n{O}\nsecret\n{C}END"], "İ\nEND", OFFSETS),
    (77, [f"{O}\nİİİ\n{C}END"], "END", OFFSETS),
    (78, [f"\0{O}\nS\n{C}x"], "\0x", MORE_ON_ITS_LINE),
    (80, [f"{O}\fS\n{C}x"], "x", MORE_ON_ITS_LINE),
    (81, [f"{O}\u2028S\n{C}x"], "x", MORE_ON_ITS_LINE),
]
PIECES = [
    O, C, O, C, BLOCK, f"`{O}", f"``{O}", f"word {O} is", f"{C[:-1]} ` ",
    "<memory_context>", "</ Memory‑Context >", "< MEMORY-CONTEXT id='1'>", "<memory-context/>",
    "<", ">", "/", "<memory-", "context>", "<memory-context ", "</memory-context", "memory-context", "`", "``", "```",
    " ", "\t", "\n", "\r\n", "\u2028", "\f", "\0", "İ", "word ", "Word ", " is", ".", "是", "- ", "> ", "1. ", "x" * 90,
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join)
CUTS = st.lists(st.integers(1, 60), max_size=60)


def scrub(chunks: Iterable[str]) -> str:
    stream = StreamingContextScrubber()
    shown = [stream.feed(chunk) for chunk in chunks]
    return "".join(shown) + stream.flush()


def cut(text: str, sizes: Iterable[int]) -> list[str]:
    """The text in chunks of the given sizes, and what is left in one more."""
    chunks, place = [], 0
    for size in sizes:
        chunks.append(text[place : place + size])
        place += size
    return [*chunks, text[place:]]


def in_sizes(text: str, size: int) -> list[str]:
    return [text[place : place + size] for place in range(0, len(text), size)]


ROWS = [(number, chunks, total) for number, chunks, total in SAME] + [row[:3] for row in OTHER]


def test_rows_that_stay_as_they_were() -> None:
    """Fences are hidden and ordinary text is untouched where the reference did so."""
    for number, chunks, total in SAME:
        assert scrub(chunks) == total, number


def test_rows_where_the_reference_leaks_or_swallows() -> None:
    """The known leaks are closed, each for the reason that is given."""
    for number, chunks, total, why in OTHER:
        assert scrub(chunks) == total, f"{number}: {why}"


def test_the_table_is_whole() -> None:
    """Every row is there; 37, 38 and 69 are other cuts of rows 36 and 70, made by the next test."""
    assert {number for number, _, _ in ROWS} == set(range(1, 82)) - {37, 38, 69}


def test_every_row_comes_out_the_same_in_chunks_of_any_size() -> None:
    """How the stream is cut does not matter."""
    for size in [1, 2, 3, 5, 7, 16, 17, 1000]:
        for number, chunks, total in ROWS:
            assert scrub(in_sizes("".join(chunks), size)) == total, number


def test_mentions_are_text() -> None:
    """An opener in a sentence that continues, or in a code span, hides nothing, and neither do other tags."""
    for text in [
        f"It is put between {O} tags.",
        f"It is put between {O} tags.\n\n" + "The answer goes on for long. " * 20,
        f"(see {O}, {O} or {O})",
        f"The opener is {O}",
        f"标签 {O} 是特殊的",
        f"标签{O}是特殊的",
        f"- `{O}` opens and `{C}` closes",
        f"Use ``{O} ` `` here",
        f"Run `grep '{O}' notes.txt` first.\nThen go on.",
        f"One line `{O}` and\nanother `<memory-context id='1'>`.",
        "<memory-context " + "a" * 250 + ">",
        "<memory-contexts>x</memory-contexts>",
        r"<\memory-context>x<\/memory-context>",
    ]:
        assert scrub([text]) == text


def test_fences_that_look_like_mentions_are_hidden() -> None:
    """Where the sentence does not continue, or a closer follows within reach, the opener begins a fence."""
    for text, total in [
        (f"see {O} likes tea {C} end", "see  end"),
        (f"see {O} likes tea\nand coffee\n{C} end", "see  end"),
        (f"see {O} User likes tea", "see "),
        (f"see {O} [a note] likes tea", "see "),
        (f"see {O}likes tea", "see "),
        ("see <memory-context id=1> likes tea", "see "),
        (f"`{O}\nsecret\n{C}", "`"),
        (f"`{O}secret{C}`", "``"),
        (f"`{O}", "`"),
        (f"`{O}`` x\nsecret", "`"),
        (f"``{O} ` x\nsecret", "``"),
        (f"a `{O} {C[:-1]} ` >x", "a `x"),
        (f"```{O}\nsecret\n{C}\n```", "```\n```"),
        (f"1. {O} likes tea", "1. "),
        (f"- > {O} likes tea", "- > "),
        (f"The {O} tag, quoted:\n{O}\nsecret\n{C}\nBye", f"The {O} tag, quoted:\n\nBye"),
        (f"a {O} b {O} c {C} d {C} e", "a  e"),
        ("a <memory-context/>\nsecret", "a "),
        (f"<\nmemory-context\n>secret{C}.", "."),
    ]:
        assert {scrub([text]), scrub(text)} == {total}


def test_the_limit_of_a_mention() -> None:
    """In the middle of a sentence, a closer that comes too late finds the opener already shown."""
    near = f"see {O} {'x' * (MAX_TAG_CHARS - len(O) - len(C) - 1)}{C}"
    far = near.replace("xx", "xxx", 1)
    assert scrub([near]) == scrub(near) == "see "
    assert scrub([far]) == scrub(far) == far
    assert sanitize_context(far) == "see "


def assert_same_for_every_cut(text: str, sizes: list[int]) -> None:
    whole = scrub([text])
    assert scrub(cut(text, sizes)) == whole
    assert scrub(text) == whole


@pytest.mark.slow
@given(TEXTS, CUTS)
@settings(max_examples=examples(500))
def test_random_texts_come_out_the_same_for_random_cuts(text: str, sizes: list[int]) -> None:
    """Whole, in random chunks, or by single characters: one output."""
    assert_same_for_every_cut(text, sizes)


@pytest.mark.slow
def test_thousands_of_texts_of_pieces_come_out_the_same() -> None:
    """Whole, in random chunks, or by single characters: one output, in a full run ten thousand times."""
    chance = random.Random(4)
    for _ in range(examples(10_000)):
        text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(25)))
        assert_same_for_every_cut(text, [chance.randint(1, 60) for _ in range(chance.randrange(60))])


@pytest.mark.slow
@given(st.text(max_size=200).filter(lambda text: "<" not in text), CUTS)
@settings(max_examples=examples(200))
def test_text_without_brackets_is_never_held_back(text: str, sizes: list[int]) -> None:
    """Each chunk of ordinary text is shown at once."""
    stream = StreamingContextScrubber()
    assert all(stream.feed(chunk) == chunk for chunk in cut(text, sizes))


@pytest.mark.slow
@given(TEXTS)
@settings(max_examples=examples(300))
def test_what_is_held_back_is_bounded(text: str) -> None:
    """After each character, less than one longest tag waits."""
    stream = StreamingContextScrubber()
    for char in text * 3:
        stream.feed(char)
        assert len(stream._held) < MAX_TAG_CHARS


@pytest.mark.slow
@given(TEXTS)
@settings(max_examples=examples(300))
def test_only_fences_are_taken_out(text: str) -> None:
    """The output is the text with parts left out, and all of it where there is no whole opener."""
    shown = scrub([text])
    rest = iter(text)
    assert all(char in rest for char in shown)
    if not any(not tag.closes for tag in found_tags(text)):
        assert shown == text


def found_tags(text: str) -> list[fence_tags.FenceTag]:
    found: list[fence_tags.FenceTag] = []
    while tag := fence_tags.next_tag(text, found[-1].end if found else 0):
        found.append(tag)
    return found


@pytest.mark.slow
@given(TEXTS, st.text(max_size=40) | TEXTS, st.text("abc \n.", max_size=40), CUTS)
@settings(max_examples=examples(200))
def test_a_built_block_is_hidden_after_any_text(before: str, recalled: str, after: str, sizes: list[int]) -> None:
    """Whatever a model wrote before it, a block is not shown; by itself, exactly the block is hidden."""
    block = build_memory_context_block(recalled)
    assert scrub(cut(block + after, sizes)) == after
    shown = scrub(cut(before + block + after, sizes))
    assert "[Recalled memory" not in shown


def test_a_stream_after_flush_or_reset_starts_clean() -> None:
    """Neither an unterminated fence nor the last line of the stream before has any effect on the next."""
    stream = StreamingContextScrubber()
    assert stream.feed(f"word {O}\nsecret") + stream.flush() == "word "
    assert stream.feed("visible") == "visible"
    assert stream.flush() == ""
    assert stream.feed(f"{O} likes tea") + stream.flush() == ""
    assert stream.feed("a ` b <memory") == "a ` b "
    stream.reset()
    assert stream.feed(f"-context> {O}\nsecret{C}") + stream.flush() == "-context> "


def counted(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> int:
    """How many characters were searched for tags, all searches together."""
    work = 0
    search, break_off = fence_tags.next_tag, fence_tags.unfinished_tag

    def next_tag(text: str, start: int, end: int | None = None) -> fence_tags.FenceTag | None:
        nonlocal work
        tag = search(text, start, end)
        work += (tag.end if tag else len(text) if end is None else end) - start
        return tag

    def unfinished_tag(text: str, start: int, end: int | None = None) -> int:
        nonlocal work
        work += min(MAX_TAG_CHARS, len(text) - start)
        return break_off(text, start, end)

    with monkeypatch.context() as patched:
        for module in (fence_tags, scrubber, fence):
            patched.setattr(module, "next_tag", next_tag)
            patched.setattr(module, "unfinished_tag", unfinished_tag, raising=False)
        run()
    return work


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "plain prose ",
        "a < b ",
        O,
        f"see {O} is ",
        f"`{O} ",
        "<memory-context ",
        "<",
        f"{O}{C}",
        "<memory-context" + " " * 190,
    ],
    ids=lambda piece: piece[:16].strip(),
)
@pytest.mark.parametrize("size", [1, 20, 100_000])
def test_work_grows_with_the_length_only(piece: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the text takes four times the work, in small chunks and in one."""

    def work(length: int) -> int:
        text = (piece * length)[:length]
        return counted(monkeypatch, lambda: scrub(in_sizes(text, size)))

    short, long = work(3_000), work(12_000)
    assert long <= 4.3 * short + 4 * MAX_TAG_CHARS
    assert long <= 3 * MAX_TAG_CHARS * 12_000
