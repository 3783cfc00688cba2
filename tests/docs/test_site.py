"""The documentation site: complete, without a broken link, and without anything from another server."""

import shutil
from pathlib import Path

import pytest

from tests.docs import site

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the pages, so that a build leaves nothing in the tree."""
    shutil.copytree(site.DOCS, tmp_path / "docs")
    shutil.copy(site.ROOT / "zensical.toml", tmp_path)
    for name, value in {"ROOT": tmp_path, "DOCS": tmp_path / "docs", "SITE": tmp_path / "site"}.items():
        monkeypatch.setattr(site, name, value)
    return tmp_path


def test_every_page_is_in_the_list_of_its_section() -> None:
    """A page that no list names would never be found."""
    for section in site.DOCS.iterdir():
        if section.is_dir() and section.name != "pictures":
            listed = (section / "index.md").read_text("utf-8")
            pages = [page.name for page in section.glob("*.md") if page.name != "index.md"]
            assert [name for name in pages if f"]({name})" not in listed] == []


def test_a_page_of_decisions_can_be_read_in_one_sitting() -> None:
    """A subject that needs more words is two subjects."""
    lengths = {page.name: len(page.read_text("utf-8").split()) for page in (site.DOCS / "decisions").glob("*.md")}
    assert {name: words for name, words in lengths.items() if words > 2_500} == {}


def test_the_list_for_language_models_names_every_page() -> None:
    """And the single file holds them all."""
    listed, everything = site.llms_txt(), site.all_pages()
    pages = [page for page in site.pages() if page.name != "index.md"]
    assert [page for page in pages if f"]({page.relative_to(site.DOCS).with_suffix('.html')})" not in listed] == []
    assert [page for page in pages if page.read_text("utf-8").strip() not in everything] == []


def test_the_site_builds_and_loads_nothing_from_another_server(checkout: Path) -> None:
    """Strictly: a warning would fail the build."""
    site.build()
    assert (checkout / "site" / "how-to" / "chat.html").exists()
    assert (checkout / "site" / "llms.txt").exists()


def test_a_broken_link_fails_the_build(checkout: Path) -> None:
    """The message names the page."""
    # The other pages would take eight seconds.
    shutil.rmtree(checkout / "docs")
    (checkout / "docs").mkdir()
    (checkout / "docs" / "index.md").write_text("# Start\n\n[gone](how-to/no-such-page.md)\n")
    with pytest.raises(SystemExit, match=r"index\.md"):
        site.build()


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/x.js"></script>',
        "<img alt='' src='//cdn.example/x.png'>",
        '<link href="https://fonts.example/css" rel="stylesheet">',
        "<style>@import url(https://fonts.example/css);</style>",
    ],
)
def test_a_resource_of_another_server_is_found(tmp_path: Path, html: str) -> None:
    """Whatever kind it is."""
    (tmp_path / "page.html").write_text(html)
    assert len(list(site.remote_resources(tmp_path))) == 1


def test_a_link_that_a_reader_clicks_is_no_resource(tmp_path: Path) -> None:
    """Nor is an address in the text."""
    (tmp_path / "page.html").write_text('<a href="https://example.org/">See https://example.org</a>')
    assert list(site.remote_resources(tmp_path)) == []
