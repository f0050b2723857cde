"""The server only reads, and no request takes more of size, time or connections than it may."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException
from itertools import islice
from typing import Any

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.errors import InputError
from jobs.report.build import ReportHeader, build
from jobs.report.data import GroupDetail, Report
from jobs.serve import live as live_module
from jobs.serve import server as server_module
from jobs.serve.guard import COOKIE, Guard
from jobs.serve.live import NEWS, NOW, Live
from jobs.serve.served_rows import FoundRow, GroupAt, GroupsPage, OwnerAt, ServedOffset, ServedSetting, ServedSettings
from jobs.serve.server import served
from jobs.serve.site import GroupsAsked, Site
from jobs.settings import load
from tests.core.audit.histories import all_shown

HOSTILE = "</script><img src=x onerror=alert(1)>"
REPORT = build([GroupHistory(HOSTILE, 5)], load().findings, ReportHeader("c<b>", "1", 0, (), True, ()), all_shown)


class Fixed:
    """A place with one group."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def overview(self) -> Report:
        return REPORT._replace(groups=())

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        self.asked.append(asked)
        group = GroupAt(
            HOSTILE, "CLASSIC", 1, 2, 3, 4, None, 0, "STABLE", (OwnerAt(HOSTILE, None, 2),), 1, 2, None, None
        )
        return GroupsPage((group,), (), asked.first, 1)

    def group(self, group_id: str, since_ms: int | None, until_ms: int | None) -> GroupDetail | None:
        return REPORT.groups[0] if group_id == HOSTILE else None

    def offsets(self, group_id: str, at_ms: int | None) -> tuple[ServedOffset, ...]:
        return (ServedOffset("t", 0, 7, 1, 0, 5),)

    def settings(self, group_id: str, at_ms: int | None) -> ServedSettings:
        return ServedSettings((ServedSetting("share.auto.offset.reset", "earliest"),), (), ())

    def search(self, text: str) -> tuple[FoundRow, ...]:
        return (FoundRow("group", HOSTILE, HOSTILE, None),)


@pytest.fixture
def place() -> Fixed:
    return Fixed()


@pytest.fixture
def port(place: Fixed) -> Iterator[int]:
    with served("127.0.0.1", 0, Site(place, is_live=True), Guard.of("127.0.0.1"), Live()) as port:
        yield port


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def raw(port: int, data: bytes) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_the_page_has_no_inline_code_and_says_so(port):
    status, headers, page = ask(port, "/")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'; form-action 'none'" in policy
    assert b"<style" not in page
    assert b" style=" not in page
    assert b"<script>" not in page
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer", "links in the page do not tell what it shows"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert ask(port, "/page.js")[1]["content-type"].startswith("text/javascript")
    assert ask(port, "/page.css")[1]["content-type"].startswith("text/css")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "ANYTHING"])
def test_nothing_can_be_written(port, method):
    assert ask(port, "/api/groups", method)[0] in (405, 501)


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/page.js/../../x", "//etc/passwd", "/%2e%2e/etc/passwd", "/templates/report.css"]
)
def test_no_path_of_a_request_is_a_file(port, path):
    status, _, body = ask(port, path)
    assert status == 404
    assert json.loads(body) == {"error": "there is nothing at this address"}


@pytest.mark.parametrize("path", ["/", "/api/groups", "/api/live", "/page.js"])
def test_another_site_gets_nothing(port, path):
    """DNS rebinding: the name is the attacker's, the address is this machine."""
    assert ask(port, path, Host="evil.example")[0] == 403
    assert ask(port, path, Origin="http://evil.example")[0] == 403
    assert ask(port, path, **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_names_of_clients_are_text(port):
    for question in ("groups", "search?find=a", "group?group=" + "%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E"):
        status, headers, body = ask(port, f"/api/{question}")
        assert status == 200
        assert headers["content-type"] == "application/json"
        assert HOSTILE in body.decode()
    page = ask(port, "/")[2]
    assert b"<img" not in page
    assert b"c&lt;b&gt;" in page


def test_what_is_wrong_in_a_question_is_said(port):
    for query, said in (
        ("groups?at=yesterday", "invalid time"),
        ("groups?first=-1", "invalid first"),
        ("group", "group is missing"),
        (f"groups?find={'x' * 501}", "more than 500 characters"),
    ):
        status, _, body = ask(port, f"/api/{query}")
        assert status == 400
        assert said in json.loads(body)["error"]
    assert ask(port, "/api/group?group=none")[0] == 404


def test_a_place_that_cannot_answer_now_has_no_word_about_the_group(port, place, monkeypatch):
    """The page takes 404 as: the group was not there, and had committed nothing."""

    def busy(group_id: str, at_ms: int | None) -> tuple[ServedOffset, ...]:
        raise InputError("the tables are busy with another question: ask again")

    monkeypatch.setattr(place, "offsets", busy)
    assert ask(port, "/api/offsets?group=g")[0] == 503


def test_a_page_of_groups_has_a_bound(port, place):
    assert ask(port, "/api/groups?most=1000000000")[0] == 200
    assert place.asked[-1].most == 200


def test_large_requests_are_refused(port):
    assert ask(port, "/?" + "&".join(f"a{n}=1" for n in range(17)))[0] == 400
    assert ask(port, "/?find=" + "x" * 9000)[0] == 414
    assert raw(port, b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n").split(b" ", 2)[1] == b"414"
    assert (
        raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 70_000 + b"\r\n\r\n").split(b" ", 2)[1] == b"431"
    )
    many = b"".join(b"A%d: b\r\n" % number for number in range(101))
    assert raw(port, b"GET / HTTP/1.1\r\n" + many + b"\r\n").split(b" ", 2)[1] == b"431"
    assert raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n").split(b" ", 2)[1] == b"413"
    assert raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").split()[1] == b"413"
    assert raw(port, b"\x16\x03\x01 hello\r\n\r\n").split(b" ", 2)[1:2] == [b"400"]


def test_what_is_no_address_is_said(port):
    assert raw(port, b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.0 400 ")
    headers = b"Host: localhost\r\nOrigin: http://["
    assert raw(port, b"GET / HTTP/1.1\r\n" + headers + b"\r\n\r\n").startswith(b"HTTP/1.0 403 ")


@pytest.mark.parametrize("host", ["h" * 64, "a..b", "\udc80"])
def test_a_host_that_is_no_name_of_dns_is_an_error(place, host):
    refused = pytest.raises(InputError, match=f"cannot listen at {host}:0: ")
    with refused, served(host, 0, Site(place), Guard.of("127.0.0.1")):
        pass


def test_a_request_that_drips_is_let_go(port, monkeypatch):
    """Each byte comes soon after the one before: the time counts from the first one."""
    monkeypatch.setattr(server_module, "READ_S", 0.6)
    began = time.monotonic()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - began < 8:
                connection.sendall(b"A")
                time.sleep(0.1)
    assert time.monotonic() - began < 5
    assert ask(port, "/api/groups")[0] == 200


def test_more_connections_than_it_serves_are_closed(place, monkeypatch):
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 3)
    with ExitStack() as stack:
        port = stack.enter_context(served("127.0.0.1", 0, Site(place), Guard.of("127.0.0.1")))
        idle = [stack.enter_context(closing(socket.create_connection(("127.0.0.1", port)))) for _ in range(3)]
        time.sleep(0.3)
        one_more = stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), timeout=5)))
        assert one_more.recv(1) == b""
        idle[0].close()
        time.sleep(0.5)
        assert ask(port, "/api/groups")[0] == 200


def test_a_reader_that_does_not_read_is_let_go(place, monkeypatch):
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(server_module, "WRITE_S", 0.5)
    monkeypatch.setattr(server_module, "READ_S", 60.0)
    monkeypatch.setattr(place, "search", lambda text: (FoundRow("group", "x" * 30_000_000, None, None),))
    with served("127.0.0.1", 0, Site(place), Guard.of("127.0.0.1")) as port, closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"GET /api/search?find=a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answered, until = False, time.monotonic() + 15
        while not answered and time.monotonic() < until:
            with suppress(OSError, HTTPException):  # the only connection is taken
                answered = ask(port, "/api/groups")[0] == 200
        assert answered


def test_the_token_becomes_a_cookie_and_leaves_the_address(place):
    guard = Guard(frozenset(("127.0.0.1",)), "secret")
    with served("127.0.0.1", 0, Site(place), guard) as port:
        assert ask(port, "/")[0] == 401
        assert ask(port, "/?token=wrong")[0] == 401
        status, headers, _ = ask(port, "/?token=secret&a=b")
        assert (status, headers["location"]) == (303, "/?a=b")
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=Strict" in headers["set-cookie"]
        assert ask(port, "/", Cookie=headers["set-cookie"].split(";")[0])[0] == 200
        for path in ("//evil.example/", "/\\evil.example/", "/\\/evil.example/"):
            assert ask(port, f"{path}?token=secret")[1]["location"] == "/evil.example/", "it leads nowhere else"


def test_no_other_token_becomes_a_cookie(place, port):
    """A local server has none; elsewhere who has the cookie may be led to an address with another token."""
    injected = "/?token=x%0d%0aX-Injected:%20yes"
    guard = Guard(frozenset(("127.0.0.1",)), "secret")
    with served("127.0.0.1", 0, Site(place), guard) as guarded:
        for status, headers, _ in (ask(port, injected), ask(guarded, injected, Cookie=f"{COOKIE}=secret")):
            assert status == 200
            assert not {"set-cookie", "x-injected"} & headers.keys()


def test_live_rows_come_as_events(place):
    live = Live()
    live.publish('{"event":"before"}')
    with ExitStack() as stack:
        site = Site(place, is_live=True)
        port = stack.enter_context(served("127.0.0.1", 0, site, Guard.of("127.0.0.1"), live))
        connection = stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), timeout=5)))
        connection.sendall(b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        while b"before" not in told:
            told += connection.recv(65_536)
        assert b"text/event-stream" in told
        live.publish('{"event":"now"}')
        while b'data: {"event":"now"}\n\n' not in told:
            told += connection.recv(65_536)


def test_pages_that_follow_are_few_and_bounded(monkeypatch):
    monkeypatch.setattr(live_module, "MOST_FOLLOWERS", 1)
    monkeypatch.setattr(live_module, "MOST_WAITING", 2)
    live = Live()
    with live.followed() as rows, live.followed() as refused:
        assert refused is None
        assert rows is not None
        for number in range(5):
            live.publish(str(number))
        assert [*rows] == [b"retry: 2000\n\n", NOW], "a page that is too slow is let go"
    with live.followed() as rows:
        assert rows is not None


def test_a_page_that_comes_later_gets_the_last_rows_and_no_more(monkeypatch):
    monkeypatch.setattr(live_module, "MOST_KEPT", 2)
    live = Live()
    for number in range(5):
        live.publish(str(number))
    with live.followed() as rows:
        assert rows is not None
        assert live.is_followed
        assert [*islice(rows, 4)] == [b"retry: 2000\n\n", b"data: 3\n\n", b"data: 4\n\n", NOW]
        live.announce_news()
        live.publish("5")
        assert [*islice(rows, 2)] == [NEWS, b"data: 5\n\n"]
    assert not live.is_followed
