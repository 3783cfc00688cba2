"""One name for the many ways to write the address of a repository: `github.com/owner/name`.

Whoever cloned it by SSH, by HTTPS, with a port, a user or a token gets the same name, and no user, token or port is in
it. Addresses on the same disk are no names: they mean nothing on another machine.
"""

import re
from urllib.parse import unquote, urlsplit

_SCHEMES = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https", "git+http", "ftp", "ftps"})
# user@host:path, as git and scp write it; a single letter is a drive, two colons are a program of its own.
_SHORT = re.compile(r"(?:[^@/\s]+@)?(\[[0-9a-fA-F:.]+\]|[^:/@\s\[\]]{2,}):(?!:|//)(.+)")
# The same servers under the names that they have for SSH through a firewall.
_ALIASES = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
    "ssh.dev.azure.com": "dev.azure.com",
    "vs-ssh.visualstudio.com": "dev.azure.com",
}
_AZURE, _OLD_AZURE = "dev.azure.com", ".visualstudio.com"
_LONGEST = 200


def remote_name(address: str) -> str | None:
    """The name of the repository at an address; None when the address says nothing outside this machine."""
    found = _split(address.strip())
    if found is None:
        return None
    host, path = found
    steps = [step for step in _plain(path).split("/") if step not in ("", ".")]
    if ".." in steps:
        return None
    host, steps = _on_known_servers(host.removeprefix("www."), steps)
    if steps:
        steps[-1] = steps[-1].removesuffix(".git")
    name = "/".join([host, *(step for step in steps if step)])
    return name if steps and len(name) <= _LONGEST and "/" in name else None


def _split(address: str) -> tuple[str, str] | None:
    """Host and path of an address."""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host = parts.hostname
        except ValueError:
            # No address at all, such as one with half a bracket.
            return None
        return (_plain(host), parts.path) if parts.scheme.lower() in _SCHEMES and host else None
    short = _SHORT.fullmatch(address)
    return (_plain(short[1].strip("[]")), short[2]) if short else None


def _plain(text: str) -> str:
    """Small letters, no escapes, and nothing that would break a line or a name in two."""
    return re.sub(r"[^\w.~/+:-]", "-", unquote(text, errors="replace")).lower()


def _on_known_servers(host: str, steps: list[str]) -> tuple[str, list[str]]:
    """What servers write differently over SSH and HTTPS, as one."""
    host = _ALIASES.get(host, host)
    if host.endswith(_OLD_AZURE):
        owner = host.removesuffix(_OLD_AZURE)
        host, steps = _AZURE, [owner, *(step for step in steps if step != "defaultcollection")]
    if host == _AZURE:
        steps = steps[1:] if steps[:1] == ["v3"] else steps
        if len(steps) == 3 and steps[1] == "_git":
            # A project whose only repository has its name.
            steps = [steps[0], steps[2], steps[2]]
        steps = [step for step in steps if step != "_git"]
    elif steps[:1] == ["scm"] and len(steps) > 2:
        steps = steps[1:]
    return host, steps
