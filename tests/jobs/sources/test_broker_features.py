"""Asking brokers what they support, over sockets that answer as brokers do, and as others do."""

import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from jobs.sources import broker_features
from jobs.sources.broker_features import BrokerAddress, FeatureAnswer
from tests.shared_data import ROOT

ANSWERS = json.loads((ROOT / "tests" / "data" / "api_versions.json").read_text())
UNSUPPORTED = bytes.fromhex("00230000000100120000000a")


def framed(answer: bytes) -> bytes:
    return struct.pack(">i", len(answer)) + answer


@contextmanager
def broker(answer: Callable[[int], bytes]) -> Iterator[BrokerAddress]:
    """A broker of id 7 that answers each request of this version so, and then closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    request = connection.recv(1000)
                    connection.sendall(answer(int.from_bytes(request[6:8], "big")))

        Thread(target=serve, daemon=True).start()
        yield BrokerAddress(7, *server.getsockname())
        server.shutdown(socket.SHUT_RDWR)


def asked(answer: Callable[[int], bytes], config: dict[str, str] | None = None) -> FeatureAnswer:
    with broker(answer) as address:
        (found,) = broker_features.ask([address], config or {})
    assert found.broker == 7
    return found


def test_a_broker_says_what_it_supports() -> None:
    found = asked(lambda version: framed(bytes.fromhex(ANSWERS["4.4.0"][str(version)])))
    assert found.missing is None
    assert found.features is not None
    assert found.features.supported["group.version"] == 1
    assert found.features.supported["metadata.version"] == 33


def test_a_broker_that_knows_the_request_only_in_an_older_version() -> None:
    def answer(version: int) -> bytes:
        known = bytes.fromhex(ANSWERS["3.9.2"]["3"])
        return framed(known if version == 3 else struct.pack(">i", version) + UNSUPPORTED)

    found = asked(answer)
    assert found.features is not None
    assert found.features.supported == {"metadata.version": 21}


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (lambda version: framed(struct.pack(">i", version) + UNSUPPORTED), "brokers before Kafka 2.4 do not say"),
        (lambda version: b"", "the broker closed the connection without an answer"),
        (lambda version: b"\x00\x00\x00\x40half", "the broker closed the connection without an answer"),
        (lambda version: b"HTTP/1.1 400 Bad Request", "this is not the answer of a Kafka broker"),
        (lambda version: framed(b"\x00\x00"), "4 bytes wanted, 2 left"),
        (lambda version: framed(struct.pack(">ih", version, 42)), "error 42"),
    ],
)
def test_where_nothing_is_known_the_answer_says_why(answer: Callable[[int], bytes], missing: str) -> None:
    found = asked(answer)
    assert found.features is None or not found.features.supported
    assert missing in (found.missing or "")


def test_brokers_that_cannot_be_reached_are_asked_at_once() -> None:
    found = broker_features.ask([BrokerAddress(number, "127.0.0.1", 1) for number in range(40)], {})
    assert {each.missing for each in found} == {"127.0.0.1:1: Connection refused"}
    assert [each.broker for each in found] == list(range(40))


@pytest.mark.parametrize("host", ["h" * 64, "a..b", "", "a\x00b"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_host_that_is_no_name_of_dns_is_told_of_its_broker(host: str, protocol: str) -> None:
    (found,) = broker_features.ask([BrokerAddress(1, host, 9092)], {"security.protocol": protocol})
    assert found.features is None
    assert (found.missing or "").startswith(f"{host}:9092: ")


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({"ssl.ca.location": "/no/such/file"}, "the TLS settings: No such file or directory"),
        ({"ssl.keystore.location": "store.p12"}, "ssl.keystore.location cannot be used for this request"),
        ({"ssl.certificate.location": "/no/such/file"}, "the TLS settings: No such file or directory"),
        ({}, "127.0.0.1:"),
    ],
)
def test_tls_as_the_settings_of_librdkafka_say(config: dict[str, str], missing: str) -> None:
    """A broker without TLS is not asked without it."""
    found = asked(lambda version: b"no TLS", {"security.protocol": "SASL_SSL", **config})
    assert found.features is None
    assert missing in (found.missing or "")
