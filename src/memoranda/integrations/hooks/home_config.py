"""The configuration of a home as a hook needs it: read only when it is asked for, and again when its file changed."""

import os

from memoranda.home.config.environment import helper_is_off, uses_defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memoranda.home.config import Config
    from memoranda.support.home import Home


class HomeConfig:
    """The configuration of one home. A hook asks once; its helper asks at every prompt."""

    def __init__(self, home: "Home") -> None:
        self.home = home
        self._loaded: tuple[object, Config | None] | None = None

    def load(self) -> "Config | None":
        """Returns the configuration, or None when every setting has its default; raises ConfigError."""
        version = _file_version(self.home.config_file)
        if self._loaded is None or self._loaded[0] != version:
            self._loaded = (version, self._read())
        return self._loaded[1]

    def wants_helper(self) -> bool:
        """Whether hooks of this home may start a helper."""
        if helper_is_off():
            return False
        config = self.load()
        return config is None or config.hook_helper

    def _read(self) -> "Config | None":
        if uses_defaults(self.home):
            return None
        # Loads every part's settings and a YAML parser.
        from memoranda.home.config.loader import load  # noqa: PLC0415

        return load(self.home)


def _file_version(path: "os.PathLike[str]") -> object:
    try:
        status = os.stat(path)
    except OSError as error:
        return error.errno
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
