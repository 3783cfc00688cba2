"""A proxy in front of a PostgreSQL server that counts round trips and loses connections at a chosen moment."""

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp


class Proxy:
    """Forwards a socket to a server's. A round trip is data from the client after data from the server.

    `lose` decides what is lost the next time that the client sends: the "request", which then never arrives, or the
    "answer", so that the server has done what the client never learns of.
    """

    def __init__(self, server_directory: Path, delay: float = 0.0) -> None:
        """`delay` is how many seconds an answer takes more, as in a network."""
        self._delay = delay
        self.directory = Path(mkdtemp(prefix="pp"))
        self._target = str(server_directory / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.directory / ".s.PGSQL.5432"))
        self._listener.listen(50)
        self.round_trips = 0
        self.connections = 0
        self.lose = ""
        self.lose_after = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        rmtree(self.directory, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                # The server is down, and so is the way to it.
                client.close()
                server.close()
                continue
            turn = {"of": "server"}
            for source, sink, name in ((client, server, "client"), (server, client, "server")):
                threading.Thread(target=self._forward, args=(source, sink, name, turn), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, name: str, turn: dict[str, str]) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if name == "client":
                    if turn["of"] == "server":
                        self.round_trips += 1
                    if self.lose and self.lose_after in data:
                        turn["lose"], self.lose = self.lose, ""
                        if turn["lose"] == "request":
                            break
                elif turn.get("lose") == "answer":
                    break
                if name == "server" and turn["of"] == "client" and self._delay:
                    time.sleep(self._delay)
                turn["of"] = name
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
