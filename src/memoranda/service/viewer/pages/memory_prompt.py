"""Prompt: what a model sees at the start of a session, section by section, with its tokens."""

from memoranda.service.viewer.page import Page, PageRequest, View


def show(request: PageRequest) -> View:
    """The page."""
    return View("memory_prompt.html", "Prompt", request.memory.preview_prompt())


PAGE = Page("memory-prompt", "/memory/prompt", show)
