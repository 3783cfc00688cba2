"""Every page for people who use a screen reader or a keyboard: axe finds nothing serious, in light and in dark."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.viewer.page_urls import page_urls
from tests.service.viewer.running_viewer import RunningViewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

_AXE = Path(__file__).parent / "axe" / "axe.min.js"
_RUN = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
# Only colours differ in the dark.
_RUN_IN_THE_DARK = "axe.run(document, {runOnly: ['color-contrast']}).then(found => found.violations)"


def test_axe_finds_nothing_serious(viewer: RunningViewer, browser: "Browser") -> None:
    """No serious or critical finding on any page, contrast in both colour schemes included."""
    context = browser.new_context(color_scheme="light", reduced_motion="reduce")
    context.add_init_script(path=_AXE)
    page = context.new_page()
    page.goto(viewer.login_url())
    page.wait_for_url("**/view/")
    found = []
    for name, address in page_urls().items():
        page.emulate_media(color_scheme="light")
        page.goto(viewer.url + address)
        violations: list[Any] = page.evaluate(_RUN)
        page.emulate_media(color_scheme="dark")
        for violation in violations + page.evaluate(_RUN_IN_THE_DARK):
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:160] for node in violation["nodes"][:3]]
                found.append((name, violation["id"], nodes))
    context.close()
    assert found == []
