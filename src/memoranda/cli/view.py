"""`memoranda view`: the pages of a home in a browser on this machine."""

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.serve import exit_on_signal

_EPILOG = """\b
Examples:
  memoranda view                     opens the browser
  memoranda view --no-browser        prints the link only, for example over SSH
  memoranda view --port 8931         always the same port, for a tunnel
"""
_MISSING = "The viewer needs the extra 'server': pip install 'memoranda[server]'."


@click.command(epilog=_EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on; without it, a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the link.")
@memory_options
def command(port: int, no_browser: bool) -> None:
    """See your memory in the browser: conversations, search, entries, approvals, costs.

    The viewer answers on this machine only. Its link works once, within a minute; Enter prints a new one. Ctrl-C ends
    the viewer.
    """
    invocation = Invocation.current()
    try:
        from memoranda.service.http import app, server, service, settings  # noqa: PLC0415
        from memoranda.service.viewer.mount import LocalViewer  # noqa: PLC0415
    except ImportError as error:
        invocation.fail(f"{_MISSING} ({error})")
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
