"""Who may ask the served page: DNS rebinding, other sites, and the token of an address that others reach."""

import pytest

from jobs.serve.guard import COOKIE, Guard, is_local

LOCAL = Guard.of("127.0.0.1")
OPEN = Guard(frozenset(("localhost", "127.0.0.1", "audit-host")), "the-token")


@pytest.mark.parametrize("host", ["127.0.0.1:8848", "localhost:8848", "LOCALHOST", "[::1]:8848"])
def test_this_machine_may_ask(host):
    assert LOCAL.refusal({"Host": host}, None) is None
    assert LOCAL.refusal({"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}, None) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8848", "", "10.1.2.3:8848", "localhost.evil.example", "[::1", "@:"]
)
def test_a_name_of_another_site_is_refused(host):
    """A name that an attacker's DNS changed to 127.0.0.1 is still that name in Host."""
    refusal = LOCAL.refusal({"Host": host}, None)
    assert refusal is not None
    assert refusal.status == 403
    assert LOCAL.refusal({}, None) is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1:9999", "http://["]
)
def test_another_origin_is_refused(origin):
    refusal = LOCAL.refusal({"Host": "127.0.0.1:8848", "Origin": origin}, None)
    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_made_is_refused(site):
    assert LOCAL.refusal({"Host": "127.0.0.1:8848", "Sec-Fetch-Site": site}, None) is not None


def test_an_address_that_others_reach_needs_the_token():
    headers = {"Host": "192.0.2.7:8848"}
    refusal = OPEN.refusal(headers, None)
    assert refusal is not None
    assert refusal.status == 401
    assert OPEN.refusal(headers, "the-toke") is not None
    assert OPEN.refusal(headers, "the-token") is None
    assert OPEN.refusal({**headers, "Cookie": f"{COOKIE}=the-token"}, None) is None
    assert OPEN.refusal({**headers, "Cookie": f"{COOKIE}=other"}, None) is not None
    assert OPEN.refusal({**headers, "Cookie": "\x00=;;"}, None) is not None
    assert OPEN.refusal({**headers, "Authorization": "Bearer the-token"}, None) is None
    assert OPEN.refusal({"Host": "evil.example"}, "the-token") is not None, "a name that is not of this machine"


def test_only_a_local_server_goes_without_a_token():
    assert LOCAL.token is None
    assert [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3")] == [True] * 4
    assert [is_local(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org")] == [False] * 4
    one, other = Guard.of("0.0.0.0"), Guard.of("0.0.0.0")
    assert one.token
    assert other.token
    assert one.token != other.token
    assert len(one.token) >= 32
