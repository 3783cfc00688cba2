"""`memoranda server serve`, the HTTP service of a home, and `memoranda view`, its pages in a browser."""

import logging
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from memoranda.cli.background_tasks import log_resources, maintain_while_open
from memoranda.cli.context import Invocation, common_options, memory_options
from memoranda.cli.log_file import send_log
from memoranda.errors import AccessError

if TYPE_CHECKING:
    from memoranda.service.http.settings import ServerSettings

_EPILOG = """\b
Examples:
  memoranda server serve                          on this machine only, without a key
  memoranda server key create --scope read --scope append
  memoranda server serve --host 0.0.0.0           behind a proxy that adds TLS; needs a key
  memoranda server serve --compatible mem0        also for mem0's client
"""
_PORT = 8930
_SWITCH_SECONDS = 0.001
# As in service/mounts.py, which would load the server for the help of the command.
_COMPATIBLE = ("mem0",)
_REMOVED_APIS = {
    "langgraph": "MemorandaStore of memoranda.integrations.frameworks.langgraph",
    "openai": "MemorandaSession of memoranda.integrations.frameworks.openai_agents",
}
_MISSING = "The HTTP service needs the extra 'server': pip install 'memoranda[server]'."
_VIEW_EPILOG = """\b
Examples:
  memoranda view                     opens the browser
  memoranda view --no-browser        prints the link only, for example over SSH
  memoranda view --port 8931         always the same port, for a tunnel
"""
_MISSING_FOR_VIEW = "The viewer needs the extra 'view': pip install 'memoranda[view]'."


def _read_compatible(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        if name in _REMOVED_APIS:
            raise click.BadParameter(f"the API {name!r} was removed; a program can use {_REMOVED_APIS[name]}.")
    unknown = [name for name in names if name not in _COMPATIBLE]
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)} is not one of {', '.join(_COMPATIBLE)}.")
    return names


@click.command(epilog=_EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True,
              help="The port to listen on; 0 chooses a free one.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 256), default=8, show_default=True,
              help="How many requests work on the store at the same time.")  # fmt: skip
@click.option("--search-threads", type=click.IntRange(1, 64), default=2, show_default=True,
              help="How many searches work at the same time, beside them.")  # fmt: skip
@click.option("--rate", type=click.FloatRange(0), default=100.0, show_default=True,
              help="Requests a second for each key; 0 for no limit.")  # fmt: skip
@click.option("--burst", type=click.IntRange(1), default=400, show_default=True,
              help="Requests that a key may send at once.")  # fmt: skip
@click.option("--max-body", "max_body_bytes", type=click.IntRange(1_000), default=8_000_000, show_default=True,
              help="The most bytes of a request's body.")  # fmt: skip
@click.option("--timeout", "request_seconds", type=click.FloatRange(min=0, min_open=True), default=60.0,
              show_default=True, help="Seconds after which a request that is not answered gets 503.")  # fmt: skip
@click.option("--compatible", metavar="NAMES", default="", callback=_read_compatible,
              help="Also answer the client of another product: mem0.")  # fmt: skip
@click.option("--access-log", is_flag=True, help="Write a line of JSON about each request to standard error.")
@click.option("--check-config", is_flag=True, help="Say whether the service could start, and do not start it.")
@common_options
def command(
    invocation: Invocation,
    host: str,
    port: int,
    compatible: tuple[str, ...],
    access_log: bool,
    check_config: bool,
    **limits: Any,
) -> None:
    """Serve the home over HTTP: sessions, messages, search and curated memory, for programs on any machine."""
    try:
        from memoranda.service.http import app, server, service, settings  # noqa: PLC0415
        from memoranda.service.mounts import load_mounts  # noqa: PLC0415
    except ImportError as error:
        invocation.fail(f"{_MISSING} ({error})")
    from memoranda.api.memory import open_memory  # noqa: PLC0415

    # A thread that computes, such as a search, gives way to others after this time, by default five times as long.
    # An append changes threads several times, and would wait each time.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # uvicorn repeats the signal when all requests are answered: then the home is closed and the exit code is 0.
    signal.signal(signal.SIGTERM, exit_on_signal)
    if check_config:
        _check_config(invocation, host, compatible, settings.ServerSettings(**limits))
        return
    with (
        open_memory(invocation.home, profile=invocation.profile) as memory,
        suppress(KeyboardInterrupt),
        send_log(app.ACCESS_LOG.name, logging.StreamHandler()) if access_log else nullcontext(),
        log_resources(memory.home.root, "serve"),
        maintain_while_open(memory.home, memory.config.retention),
    ):
        shared = service.Service(memory, settings.ServerSettings(**limits), loopback_only=host in server.LOOPBACK)
        try:
            server.refuse_open_address(host, shared)
            with server.bind(host, port) as listener:
                address, bound = listener.getsockname()[:2]
                url = f"http://{f'[{address}]' if ':' in address else address}:{bound}"
                text = f"Listening on {url}; {url}/openapi.json describes the API, Ctrl-C stops the service."
                invocation.respond(text, {"url": url, "pid": os.getpid()})
                sys.stdout.flush()
                server.Server(app.create_app(shared, load_mounts(compatible)), shared).serve_forever(listener)
        except AccessError as error:
            invocation.fail(str(error))
        except OSError as error:
            invocation.fail(f"{host}:{port} cannot be used: {error.strerror}. --port 0 chooses a free port.")
        finally:
            shared.close()


def _check_config(invocation: Invocation, host: str, compatible: tuple[str, ...], limits: "ServerSettings") -> None:
    """Open everything that the service opens, and read from it; the port may be that of a running service."""
    from memoranda.api.memory import open_memory  # noqa: PLC0415
    from memoranda.service.http import app, server, service  # noqa: PLC0415
    from memoranda.service.mounts import load_mounts  # noqa: PLC0415

    with open_memory(invocation.home, profile=invocation.profile) as memory:
        shared = service.Service(memory, limits, loopback_only=host in server.LOOPBACK)
        try:
            server.refuse_open_address(host, shared)
            app.create_app(shared, load_mounts(compatible))
            memory.sessions.get_session("check")
            found = {
                "home": str(memory.home.root),
                "store": "postgresql" if memory.config.store.url else "files",
                "public_url": memory.config.public_url,
                "has_keys": shared.keys.exist(),
            }
        except AccessError as error:
            invocation.fail(str(error))
        finally:
            shared.close()
    lines = [f"{name}: {value}" for name, value in found.items()]
    invocation.respond("\n".join([*lines, "The service can start."]), found)


def exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the process with code 0, after what is open was closed."""
    raise SystemExit(0)


@click.command(epilog=_VIEW_EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; without it, a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@memory_options
def view(invocation: Invocation, port: int, no_browser: bool) -> None:
    """See your memory in the browser: conversations, search, entries, approvals, costs.

    The viewer answers on this machine only. Its link works once, within a minute; Enter prints a new one. Ctrl-C ends
    the viewer.
    """
    try:
        from memoranda.service.http import app, server, service, settings  # noqa: PLC0415
        from memoranda.service.viewer.mount import LocalViewer  # noqa: PLC0415
    except ImportError as error:
        invocation.fail(f"{_MISSING_FOR_VIEW} ({error})")
    from memoranda.api.memory import open_memory  # noqa: PLC0415

    signal.signal(signal.SIGTERM, exit_on_signal)
    with (
        open_memory(invocation.home, profile=invocation.profile) as memory,
        suppress(KeyboardInterrupt),
    ):
        shared = service.Service(memory, replace(settings.ServerSettings(), rate=0.0, threads=4))
        try:
            with server.bind("127.0.0.1", port) as listener:
                viewer = LocalViewer(invocation.user, prepare=True)
                address = f"http://127.0.0.1:{listener.getsockname()[1]}"
                _show_link(invocation, address + viewer.new_login_path(), no_browser)
                _print_links_on_enter(invocation, lambda: address + viewer.new_login_path())
                server.Server(app.create_app(shared, (viewer.mount,), own_routes=()), shared).serve_forever(listener)
        except OSError as error:
            invocation.fail(f"Port {port} cannot be used: {error.strerror}. Without --port, a free one is chosen.")
        finally:
            shared.close()


def _show_link(invocation: Invocation, url: str, no_browser: bool) -> None:
    opened = not no_browser and _open_browser(url)
    text = f"{url}\n" + ("Opened in your browser" if opened else "Open this link in a browser on this machine")
    text += ". It works once, within a minute; Enter prints a new one, Ctrl-C ends the viewer."
    invocation.respond(text, {"login_url": url, "opened": opened, "pid": os.getpid()})
    sys.stdout.flush()


def _open_browser(url: str) -> bool:
    """Whether a browser with a window of its own was started; one in this terminal would hide the link."""
    try:
        browser = webbrowser.get()
        return type(browser) is not webbrowser.GenericBrowser and browser.open(url)
    except (webbrowser.Error, OSError):
        return False


def _print_links_on_enter(invocation: Invocation, create_link: Callable[[], str]) -> None:
    """Print a new link for every line that is entered, as long as there is a terminal."""
    if not sys.stdin.isatty():
        return

    def read_lines() -> None:
        for _ in sys.stdin:
            invocation.respond(url := create_link(), {"login_url": url})
            sys.stdout.flush()

    threading.Thread(target=read_lines, name="viewer-links", daemon=True).start()
