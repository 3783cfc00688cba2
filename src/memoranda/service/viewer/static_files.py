"""Style sheets and scripts of the viewer, from the package; their addresses contain a digest, so browsers keep them."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from starlette.responses import Response

from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import PREFIX

_DIRECTORY = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class StaticFiles:
    """The files of `static/`, read once."""

    def __init__(self) -> None:
        self._files = {path.name: path.read_bytes() for path in _DIRECTORY.iterdir() if path.suffix in _TYPES}
        digest = sha256()
        for name in sorted(self._files):
            digest.update(self._files[name])
        self._version = digest.hexdigest()[:12]

    def url(self, name: str) -> str:
        """The address of a file; raises KeyError for an unknown one."""
        _ = self._files[name]
        return f"{PREFIX}/static/{self._version}/{name}"

    def respond(self, path: str, headers: Mapping[str, str]) -> Response:
        """The file at a path; raises Problem 404. An address of another version gets the file without being kept."""
        _, _, version, name = (*path.split("/", 3), "", "", "")[:4]
        if name not in self._files:
            raise Problem(404, "not_found", "There is no such file.")
        caching = {"Cache-Control": _FOREVER} if version == self._version else {}
        return Response(self._files[name], headers=caching, media_type=_TYPES[Path(name).suffix])
