"""The viewer of `memoranda view`: for one person on this machine, who logs in with a link that works once."""

from memoranda.service.viewer.login_pages import LOGIN
from memoranda.service.viewer.logins import LoginLinks
from memoranda.service.viewer.mount import viewer_mount
from memoranda.service.viewer.page import page_url


class LocalViewer:
    """The mount of a viewer that takes only its own links."""

    def __init__(self, user: str | None = None, *, prepare: bool = False) -> None:
        self._links = LoginLinks()
        self.mount = viewer_mount(self._links, user, prepare=prepare)

    def new_login_path(self) -> str:
        """The path of a new link, which works once and for a minute."""
        return page_url(LOGIN, token=self._links.create())
