"""The HTTP server: it only reads, and what a request may take of size, time and connections is bounded.

The server of the standard library is enough: each answer is a blocking query, a page has few readers, and what a
framework would add (routes of methods that write, uploads, sessions) is what must not be here. One connection is one
request, in a thread of its own.
"""

import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from coordinator_core.errors import InputError
from jobs.serve.guard import COOKIE, Guard
from jobs.serve.live import Live
from jobs.serve.site import Answer, Site

MOST_CONNECTIONS: Final = 48
"""Connections at a time, with those that wait for live rows; more are closed at once."""
READ_S: Final = 5.0
"""A request has to be there in this time, however slowly it drips."""
WRITE_S: Final = 30.0
"""An answer has to be taken in this time."""
LONGEST_TARGET: Final = 8_192
"""Characters of the target of a request: path and query."""
MOST_FIELDS: Final = 16
"""Fields of a query."""
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Dripping(io.RawIOBase):
    """What a client sends, until a deadline: a timeout of the socket alone would begin again with each byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._deadline = connection, time.monotonic() + READ_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self._deadline - time.monotonic()
        if rest <= 0:
            raise TimeoutError("the request is not there in time")
        self._connection.settimeout(rest)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    server_version, sys_version = "coordinator-audit", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Dripping(self.connection))

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self._fail(405, "this server only reads: use GET")
        elif self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self._fail(413, "a request has no body here")
        elif len(self.path) > LONGEST_TARGET:
            self._fail(414, "the address is too long")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer, or say why not."""
        try:
            parts = urlsplit(self.path)
            asked = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            self._fail(400, "this is not an address, or its query has too many fields")
            return
        token = asked.pop("token", None)
        refusal = self.server.guard.refusal(self.headers, token)  # type: ignore[arg-type]
        if refusal is not None:
            self._fail(*refusal)
        elif token is not None and self.server.guard.is_own(token):
            self._keep(token, parts.path, asked)
        elif parts.path == "/api/live" and self.server.live is not None:
            self._follow(self.server.live)
        else:
            self._send(self.server.site.answer(parts.path, asked))

    do_HEAD = do_GET  # noqa: N815

    def _keep(self, token: str, path: str, asked: dict[str, str]) -> None:
        """Keep the token as a cookie, so that it does not stay in the address, nor in the history of the browser."""
        self._begin(303, "text/plain; charset=utf-8", 0)
        query = urlencode(asked)
        # A path that begins with two slashes or backslashes would be another host, to which the browser would then go.
        self.send_header("Location", "/" + path.lstrip("/\\") + (f"?{query}" if query else ""))
        self.send_header("Set-Cookie", f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/")
        self.end_headers()

    def _follow(self, live: Live) -> None:
        """Send live rows until the client goes, or falls behind."""
        with live.followed() as rows:
            if rows is None:
                self._fail(503, "as many pages as can be served follow already")
                return
            self._begin(200, "text/event-stream; charset=utf-8", None)
            self.end_headers()
            with suppress(OSError):
                for text in rows:
                    self.connection.settimeout(READ_S)
                    self.wfile.write(text)
                    self.wfile.flush()

    def _fail(self, status: int, reason: str) -> None:
        self._send(Answer(status, "application/json", json.dumps({"error": reason}).encode()))

    def _send(self, answer: Answer) -> None:
        self._begin(answer.status, answer.kind, len(answer.body))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _begin(self, status: int, kind: str, length: int | None) -> None:
        # Reading has left the socket with what remained of its own deadline.
        self.connection.settimeout(WRITE_S)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        for name, value in HEADERS.items():
            self.send_header(name, value)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of HTTP as any other failure."""
        # If the first line is no request, the parser stops before it sets what an answer needs.
        if not hasattr(self, "headers"):
            self.headers = self.MessageClass()
        self.command, self.request_version = getattr(self, "command", None) or "GET", "HTTP/1.0"
        with suppress(OSError):
            self._fail(code, message or "this is not a request of HTTP")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are text from outside, and a terminal is no place for it."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32

    def __init__(self, address: tuple[str, int], site: Site, guard: Guard, live: Live | None) -> None:
        if ":" in address[0]:
            # The server is one of IPv4 by itself, and only addresses of IPv6 have colons.
            self.address_family = socket.AF_INET6
        self.site, self.guard, self.live = site, guard, live
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        # Once its thread has begun, that gives the connection back.
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a client that went, or was too slow; what an answer could not do was told in it."""


@contextmanager
def served(host: str, port: int, site: Site, guard: Guard, live: Live | None = None) -> Iterator[int]:
    """Serve the site meanwhile; give the port, which 0 leaves to chance.

    Raises:
        InputError: the port is in use, or this process may not listen there.
    """
    try:
        server = _Server((host, port), site, guard, live)
    # The last one is of a host that is not even text.
    except (OSError, TypeError) as error:
        raise InputError(f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}") from error
    thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
