"""Markdown as HTML: what models write is rendered, and nothing of it loads, runs or is lost."""

import re
import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.support.markdown_html import render_markdown
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_TAG = re.compile(r"</?(\w+)[^<>]*>")
_ALLOWED = {"p", "pre", "code", "hr", "strong", "em", "del", "a", "ul", "ol", "li", "blockquote", "div", "table",
            "thead", "tbody", "tr", "th", "td"}  # fmt: skip
_OPENINGS = ("`", "*", "**a", "[", "[a](", "![", "~~a", "> ", "- ", "|-", "\n- a", "```\n", "a|\n", "\n\n")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "**bold** and *slanted* and ~~gone~~",
            "<p><strong>bold</strong> and <em>slanted</em> and <del>gone</del></p>",
        ),
        ("## Result", "<p><strong>Result</strong></p>"),
        ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
        ("`a < b` and ``a ` b``", "<p><code>a &lt; b</code> and <code>a ` b</code></p>"),
        ("- one\n- two\n  more", "<ul><li>one</li><li>two\nmore</li></ul>"),
        ("1. one\n\n2. two", "<ol><li>one</li><li>two</li></ol>"),
        ("3. three", '<ol start="3"><li>three</li></ol>'),
        ("- one\n  - inner", "<ul><li>one<ul><li>inner</li></ul></li></ul>"),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("```py\nx = 1\n\ny\n```\nend", "<pre><code>x = 1\n\ny</code></pre><p>end</p>"),
        ("```\nnot closed", "<pre><code>not closed</code></pre>"),
        ("---", "<hr>"),
        ("[a.py](src/a.py)", "<p>a.py <code>src/a.py</code></p>"),
        ("2 * 3 * 4, __init__, snake_case_name", "<p>2 * 3 * 4, __init__, snake_case_name</p>"),
    ],
)
def test_what_models_write_is_rendered(text: str, html: str) -> None:
    """Each form of Markdown has its element; what is none stays as it is."""
    assert render_markdown(text) == html


def test_a_table_has_its_rows() -> None:
    """With the rule below its head; without one, lines with bars stay lines."""
    shown = render_markdown("| a | b |\n|---|:-:|\n| 1 | **2** |")
    assert "<th>a</th><th>b</th>" in shown and "<td>1</td><td><strong>2</strong></td>" in shown
    assert render_markdown("a | b\nc | d") == "<p>a | b\nc | d</p>"


def test_addresses_are_links_that_say_where_they_lead() -> None:
    """Only http and https; the browser tells the other side nothing."""
    shown = render_markdown("See https://heron.example/a?b=1. And [here](https://heron.example).")
    assert shown.count('rel="noopener noreferrer nofollow"') == 2
    assert '<a href="https://heron.example/a?b=1" title="https://heron.example/a?b=1"' in shown
    assert "</a>. And" in shown
    for target in ("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//heron.example"):
        assert "<a" not in render_markdown(f"[x]({target})")


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "```\n{}\n```",
        "~~~html\n{}",
        "`{}`",
        "**{}**",
        "# {}",
        "- {}",
        "1. {}",
        "> {}",
        "a|b\n-|-\n{}|c",
        "[{}](https://a.b)",
    ],
)
def test_html_is_shown_as_it_was_written_wherever_it_stands(form: str) -> None:
    """Also in a block of code, whose text no other rule reads."""
    shown = render_markdown(form.format("<script>alert(1)</script>"))
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_an_image_is_not_loaded() -> None:
    """It becomes a link with its description."""
    shown = render_markdown("![the plan](https://heron.example/x.png)")
    assert "<img" not in shown and ">image: the plan</a>" in shown


@given(st.text(alphabet="ab<>&\"'`*~_[]()!#|->+. \n\t1:/hps", max_size=200))
def test_no_text_becomes_another_element(text: str) -> None:
    """Whatever the text is, only the elements of Markdown appear, each is closed, and no attribute is added."""
    shown = render_markdown(text)
    opened: list[str] = []
    for tag in _TAG.finditer(shown):
        name, is_end = tag[1], tag[0].startswith("</")
        assert name in _ALLOWED
        attributes = re.sub(r'(?:href|title)="https?://[^"<>]*"|rel="[a-z ]*"|class="scroll"|start="\d+"', "", tag[0])
        assert re.fullmatch(r"</?\w+\s*>", attributes), tag[0]
        if is_end:
            assert opened.pop() == name
        elif name != "hr":
            opened.append(name)
    assert opened == []
    assert "<" not in _TAG.sub("", shown) and ">" not in _TAG.sub("", shown)


@given(st.text(alphabet="abc <>&\n", max_size=100))
def test_words_are_kept(text: str) -> None:
    """Without the signs of Markdown every word is still there."""
    shown = unescape(_TAG.sub(" ", render_markdown(text)))
    assert re.findall(r"\w+", shown) == re.findall(r"\w+", text)


@pytest.mark.parametrize("part", _OPENINGS)
def test_the_time_grows_with_the_text(part: str) -> None:
    """Repeated openings without an end cost no more than a few seconds for 100,000 characters."""
    text = part * (100_000 // len(part))
    began = time.process_time()
    render_markdown(text)
    assert time.process_time() - began < GIVE_UP
