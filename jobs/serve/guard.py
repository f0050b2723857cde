"""Who may ask: requests of the page itself and of its operator, and no others.

A page of another site can send requests to 127.0.0.1 from the operator's browser, and by DNS rebinding also read the
answers. So Host has to be an address or a name of this machine, and Origin, where a browser sends it, the same host.
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

COOKIE: Final = "coordinator_audit_token"
LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))
FORBIDDEN: Final = 403
UNAUTHORIZED: Final = 401


class Refusal(NamedTuple):
    """Why a request is refused: the status of the answer, and a sentence."""

    status: int
    reason: str


class Guard(NamedTuple):
    """What is checked of each request. ``token``: what it has to bring along; None: the server is local."""

    names: frozenset[str]
    token: str | None = None

    @classmethod
    def of(cls, host: str) -> "Guard":
        """Return the guard of a server that listens at this host: one that others can reach needs a token."""
        if is_local(host):
            return cls(LOCAL)
        return cls(
            LOCAL | {socket.gethostname().lower(), socket.getfqdn().lower(), host.lower()}, secrets.token_urlsafe(24)
        )

    def refusal(self, headers: Mapping[str, str], given: str | None) -> Refusal | None:
        """Return why a request with these headers is refused; None: it is not. ``given``: a token in its address."""
        address = _parts(f"//{headers.get('Host') or ''}")
        host = None if address is None else address.hostname
        # An address as Host cannot come from DNS rebinding: there it is the name of the other site.
        if host is None or not (host in self.names or (self.token is not None and _is_address(host))):
            return Refusal(FORBIDDEN, "Host is not a name of this server: another site may be behind the request")
        if "Origin" in headers:
            origin = _parts(headers["Origin"])
            if origin is None or origin.netloc.lower() != (headers.get("Host") or "").lower():
                return Refusal(FORBIDDEN, "Origin is another site")
        # Browsers send it also with pictures and scripts, for which they leave out Origin.
        if headers.get("Sec-Fetch-Site", "none").lower() not in ("none", "same-origin"):
            return Refusal(FORBIDDEN, "the request comes from another site")
        if self.token is not None and not self._knows(headers, given):
            return Refusal(UNAUTHORIZED, "open the address that the server printed: it has the token")
        return None

    def _knows(self, headers: Mapping[str, str], given: str | None) -> bool:
        try:
            cookie = SimpleCookie(headers.get("Cookie") or "").get(COOKIE)
        except CookieError:
            cookie = None
        kind, _, bearer = (headers.get("Authorization") or "").partition(" ")
        tokens = [given, None if cookie is None else cookie.value, bearer if kind.lower() == "bearer" else None]
        return any(map(self.is_own, tokens))

    def is_own(self, token: str | None) -> bool:
        """Return whether this is the token of the server."""
        if self.token is None or token is None:
            return False
        # In a time that does not tell how much of a token is right.
        return hmac.compare_digest(token.encode(), self.token.encode())


def is_local(host: str) -> bool:
    """Return whether only this machine reaches a server at this host."""
    return host in LOCAL or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _parts(address: str) -> SplitResult | None:
    """Return the parts of an address; None: it is not one."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
