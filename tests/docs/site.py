"""Builds the documentation site into `site/`, strictly, with `llms.txt` and one Markdown file of all pages.

`make docs` runs it. A broken link fails the build; so does a page that would load anything from another server.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = ROOT / "site"
_SECTIONS = ("tutorial", "how-to", "reference", "explanation", "decisions")
# What a browser fetches by itself, unlike a link that a reader clicks: scripts, images, frames, style sheets, fonts.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|icon|preload|preconnect|dns-prefetch|manifest|modulepreload))[^>]*\bhref=[\"']?(?:https?:)?//"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//"
    r"|url\([\"']?(?:https?:)?//",
    re.IGNORECASE,
)


def pages() -> list[Path]:
    """Every page, in reading order: the start page, then each section with its index first."""
    found = [DOCS / "index.md"]
    for section in _SECTIONS:
        found += sorted((DOCS / section).glob("*.md"), key=lambda page: (page.name != "index.md", page.name))
    return found


def title(page: Path) -> str:
    """The heading of a page."""
    return page.read_text("utf-8").split("\n", 1)[0].lstrip("# ")


def llms_txt() -> str:
    """A list of all pages for language models, in the form of llmstxt.org."""
    lines = [
        "# Memoranda",
        "",
        "> A memory for AI agents that never loses a turn: no model call, no network, no daemon.",
        "",
    ]
    lines += ["All pages in one file: [llms-full.md](llms-full.md)", ""]
    for section in _SECTIONS:
        lines += [f"## {title(DOCS / section / 'index.md')}", ""]
        inside = [page for page in pages() if page.parent.name == section and page.name != "index.md"]
        lines += [f"- [{title(page)}]({page.relative_to(DOCS).with_suffix('.html').as_posix()})" for page in inside]
        lines.append("")
    return "\n".join(lines)


def all_pages() -> str:
    """Every page one after the other, each under the path that other pages link to."""
    return (
        "\n\n".join(
            f"<!-- {page.relative_to(DOCS).as_posix()} -->\n\n{page.read_text('utf-8').strip()}" for page in pages()
        )
        + "\n"
    )


def remote_resources(site: Path) -> Iterator[str]:
    """Every place in the built pages and styles from which a browser would fetch something from another server."""
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css"):
            text = file.read_text("utf-8")
            yield from (f"{file.relative_to(site)}: {found.group()}" for found in _FETCHED.finditer(text))


def build() -> None:
    """Build the site; raise when a link is broken or a page is not self-contained."""
    program = Path(sys.executable).with_name("zensical")
    built = subprocess.run(
        [program, "build", "--clean", "--strict"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise SystemExit(f"The site could not be built.\n{built.stdout}{built.stderr}")
    (SITE / "llms.txt").write_text(llms_txt(), "utf-8")
    (SITE / "llms-full.md").write_text(all_pages(), "utf-8")
    if remote := list(remote_resources(SITE)):
        raise SystemExit("These pages load something from another server:\n" + "\n".join(remote))


if __name__ == "__main__":
    build()
    print(f"{len(pages())} pages in {SITE.relative_to(ROOT)}/index.html")
