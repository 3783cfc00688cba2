"""Opens the stores of which this node has indexes, so that these follow deletions before any user comes.

A store is otherwise opened by its first request, and for a store whose users have all moved away there is none.
"""

import logging
import threading
import time
from collections.abc import Callable

from memoranda.errors import HomeError, MemorandaError
from memoranda.home import config
from memoranda.support.home import Home, server_index_path

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0


def open_indexed_stores(home: Home, settings: config.Config, open_store: Callable[[int], object]) -> None:
    """Call `open_store`, in a thread, with the number of each store of which the home has indexes, until it succeeds.

    Starting does not wait for a server that cannot be reached. The thread ends when the home is closed.
    """
    urls = config.store_urls(home, settings) or [config.server_url(home, settings)]
    names = [server_index_path(home.root, url).stem for url in urls]
    numbers = [number for number, name in enumerate(names) if any(home.root.glob(f"{name}.*"))]
    if numbers:
        threading.Thread(target=_open_all, args=(numbers, open_store), name="memoranda-open", daemon=True).start()


def _open_all(numbers: list[int], open_store: Callable[[int], object]) -> None:
    while numbers:
        try:
            open_store(numbers[0])
            numbers.pop(0)
        except HomeError:
            # The home was closed.
            return
        except MemorandaError as error:
            _log.warning("Deletions do not reach an index of this node yet: %s", error)
            # Another store may be available.
            numbers.append(numbers.pop(0))
            time.sleep(_RETRY_SECONDS)
