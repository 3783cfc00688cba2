"""A gate in front of a server: passes bytes through, refuses connections, or loses an answer.

Closing the gate is what a stopped server looks like to a client: open connections break, and new ones are refused.
"""

import socket
import threading
from contextlib import suppress

_CHUNK = 65_536


class TcpGate:
    """Listens on a free port of this machine and connects to another one."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lose_next = False
        self.lost_answers = 0
        self.port = 0
        self._listener: socket.socket | None = None
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Accept connections, on the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections, and break those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone does not wake the thread that waits in accept().
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._break(pair)

    def lose_next_answer(self) -> None:
        """Break the next connection as soon as the server answers: it has done its work, and the client cannot know.

        Calls do not add up: after an outage they would hit one delivery ten times, whose pauses double each time.
        """
        with self._lock:
            self._lose_next = True

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                lose, self._lose_next = self._lose_next, False
                self._pairs.add((client, server))
            threading.Thread(target=self._pass_on, args=((client, server), client, server, False), daemon=True).start()
            threading.Thread(target=self._pass_on, args=((client, server), server, client, lose), daemon=True).start()

    def _pass_on(
        self, pair: tuple[socket.socket, socket.socket], source: socket.socket, target: socket.socket, lose: bool
    ) -> None:
        try:
            while data := source.recv(_CHUNK):
                if lose:
                    with self._lock:
                        self.lost_answers += 1
                    break
                target.sendall(data)
        except OSError:
            # The other direction has broken the connection.
            return
        finally:
            self._break(pair)

    def _break(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
        for end in pair:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
