"""Exported documents show what was said, and nothing in them is executed."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.upkeep.transcripts import _quote, read_conversations, render_html, render_markdown, without_controls
from tests.search.past import tell

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</div></article></section></style><style>*{display:none}</style>",
    "\"'><svg/onload=alert(1)> &lt;b&gt; &#60;",
    "\u202eevil\u202c and \x00NUL \x1b[31mred \x9bcsi \ud800 lone",
    "![beacon](http://example.com/x.png) [x](javascript:alert(1))",
    "```\n<script>in code</script>\n```\n<script>after</script>",
    "- a\n  ```\nx\n<script>the list has ended</script>",
    "~~~\n```\n~~~~~\n<b>after the fence</b>",
    "# Not a heading of ours\n## user\n---",
    "`````",
    "x" * 10_000,
)
MARKUP = ("<script>", "```", "~~~~", "`", "- ", "  ", "    ", "\n", "> ", "1. ", "a", "\t", "<!--", "-->", "<?x",
          "[x]: <y>\n", "\\", "# ", "``` x`y", "![", "](x)")  # fmt: skip
_TAGS = {"html", "head", "meta", "title", "style", "body", "main", "section", "header", "h1", "h2", "bdi", "dl", "dt",
         "dd", "small", "article", "div", "details", "summary", "pre", "nav", "ol", "li", "a",
         "p", "ul", "code", "strong", "em", "del", "blockquote", "hr", "table", "thead", "tbody", "tr",
         "th", "td"}  # fmt: skip


class _Page(HTMLParser):
    """Collects tags, attributes and the texts of tool calls and their output."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.texts: list[str] = []
        self._collects = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}
        self._collects = tag == "pre"
        if self._collects:
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._collects = False

    def handle_data(self, data: str) -> None:
        if self._collects:
            self.texts[-1] += data


@settings(max_examples=50)
@given(st.lists(st.sampled_from(MARKUP), max_size=14))
def test_no_text_becomes_html_or_an_image_in_markdown(parts: list[str]) -> None:
    """A renderer that allows HTML finds none, and the next message is not a part of this one."""
    markdown = pytest.importorskip("markdown_it", reason="markdown-it-py renders the documents")
    quoted = "\n".join(_quote("".join(parts)))
    tokens = markdown.MarkdownIt("commonmark", {"html": True}).parse(f"{quoted}\n\n## assistant\n")
    nested = [token for parent in tokens for token in (parent, *(parent.children or ()))]
    assert not [token.content for token in nested if token.type in ("html_block", "html_inline", "image")]
    assert (tokens[-3].type, tokens[-3].level) == ("heading_open", 0)


@pytest.fixture
def db(tmp_path: Path) -> SessionDB:
    return SessionDB(tmp_path / "state.db")


def test_hostile_text_is_shown_in_html_and_adds_no_markup(db: SessionDB) -> None:
    """In messages, roles, tool names, calls, titles and sources."""
    for number, text in enumerate(HOSTILE):
        call = {"function": {"name": text[:100], "arguments": text}}
        tell(db, f"s{number}", [("user", text), ("assistant", "ok", {"tool_calls": [call]}),
                                ("tool", text, {"tool_name": text[:100]})], source="<i>cli</i>")  # fmt: skip
        if text.strip() and number not in (3, 10):
            db.set_session_title(f"s{number}", text[:60])
    page = _Page()
    text = "".join(render_html(read_conversations(db, [f"s{number}" for number in range(len(HOSTILE))])))
    page.feed(text)
    assert page.tags <= _TAGS
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "style")]
    links = {value for name, value in page.attributes if name == "href"}
    own = {f"#c{number}" for number in range(1, len(HOSTILE) + 1)}
    assert own <= links and all(link.startswith("http://") for link in links - own)
    for hostile in HOSTILE:
        assert page.texts.count(without_controls(hostile)) >= 2
    policy = next(value for _, value in page.attributes if "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    text.encode("utf-8")
    db.close()


def test_what_was_said_is_rendered_in_html(db: SessionDB) -> None:
    """With elements instead of the signs of Markdown; an image is a link, which nothing loads."""
    tell(db, "s", [("assistant", "**Done:**\n\n- `take`\n- `stop`\n\n![plan](https://heron.example/x.png)")])
    document = "".join(render_html(read_conversations(db, ["s"])))
    assert "<p><strong>Done:</strong></p><ul><li><code>take</code></li><li><code>stop</code></li></ul>" in document
    assert "**" not in document and "<img" not in document
    db.close()


def test_hostile_text_in_markdown_stays_in_its_message(db: SessionDB) -> None:
    """Every line of a message is quoted, and HTML outside of code is escaped."""
    for number, text in enumerate(HOSTILE):
        tell(db, f"s{number}", [("user", text)])
    for number in range(len(HOSTILE)):
        document = "".join(render_markdown(read_conversations(db, [f"s{number}"])))
        body = document.split("#1*\n\n" if number == 0 else f"#{number + 1}*\n\n", 1)[1]
        assert all(line.startswith(">") for line in body.splitlines()), HOSTILE[number]
        assert "![" not in body
        outside = body if number != 5 else body.split("```")[2]
        assert "<script" not in outside, HOSTILE[number]
        assert "<b>" not in outside
        document.encode("utf-8")
    db.close()


def test_markdown_shows_calls_and_output_as_code(db: SessionDB) -> None:
    """The fence is longer than any in the text."""
    call = {"function": {"name": "read", "arguments": '{"path": "a.md"}'}}
    tell(db, "s", [("user", "Read it"), ("assistant", None, {"tool_calls": [call]}),
                   ("tool", "```\ncode\n````", {"tool_name": "read"})], title="A *title*")  # fmt: skip
    document = "".join(render_markdown(read_conversations(db, ["s"])))
    assert document.startswith("# A \\*title\\*\n")
    assert 'Calls `read`:\n\n```text\n{"path": "a.md"}\n```\n' in document
    assert "`````text\n```\ncode\n````\n`````\n" in document
    assert "- source: `cli`\n" in document
    db.close()


def test_a_compressed_conversation_is_one_document_without_copies(db: SessionDB) -> None:
    """Whichever of its sessions is named."""
    _, last = tell(db, "s", ["The plum cake", "needs butter"], title="Cake")
    db.rotate_session("s", "s2", [Summary("They talked about a cake."), KeptMessage(last)], last_seen=last)
    db.append_message("s2", "user", "How much?")
    for name in ("s", "s2"):
        (conversation,) = read_conversations(db, [name, "s2", "s"])
        assert [message.text for message in conversation.messages()] == ["The plum cake", "needs butter", "How much?"]
    db.close()
