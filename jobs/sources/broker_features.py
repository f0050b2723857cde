"""Asks brokers for the levels of features that they support: these tell their release (KIP-584).

librdkafka has no call for it. It takes one request, which brokers answer before a client has logged in, so that
only the TLS settings of librdkafka matter.
"""

import socket
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_core.errors import DecodeError
from coordinator_core.wire.api_versions import VERSIONS, BrokerFeatures, features, request_bytes
from jobs.installation import software_version

CLIENT: Final = "coordinator-audit"
TIMEOUT_S: Final = 10.0
AT_ONCE: Final = 16
"""Brokers that are asked at the same time, so that a few that do not answer do not hold up all others."""
LONGEST_ANSWER: Final = 1 << 20
"""Bytes; an answer has some kilobytes. A port that speaks something else may announce any length."""
WITH_TLS: Final = ("ssl", "sasl_ssl")
UNREADABLE: Final = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.location")
"""Settings of librdkafka that Python's TLS takes only as files in the format PEM, or not at all."""


class BrokerAddress(NamedTuple):
    """Where a broker listens."""

    broker: int
    host: str
    port: int


class FeatureAnswer(NamedTuple):
    """What a broker said; ``missing`` says why there are no ``features``, or that its release has none."""

    broker: int
    features: BrokerFeatures | None
    missing: str | None


def ask(brokers: Iterable[BrokerAddress], config: Mapping[str, str]) -> list[FeatureAnswer]:
    """Return the answer of each broker; ``config`` has settings of librdkafka. Raises nothing for a broker."""
    listed = list(brokers)
    try:
        context = _tls(config)
    except (OSError, ValueError) as error:
        return [FeatureAnswer(address.broker, None, f"the TLS settings: {_text(error)}") for address in listed]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda address: _ask_one(address, context), listed))


def _ask_one(address: BrokerAddress, context: ssl.SSLContext | None) -> FeatureAnswer:
    try:
        for version in VERSIONS:
            answer = features(_exchanged(address, context, version), version, version)
            if answer is not None:
                return FeatureAnswer(address.broker, answer, None)
    # A host that DNS or TLS cannot have is a ValueError, before anything is sent.
    except (OSError, ValueError, DecodeError) as error:
        return FeatureAnswer(address.broker, None, f"{address.host}:{address.port}: {_text(error)}")
    said = f"{address.host}:{address.port}: brokers before Kafka 2.4 do not say"
    return FeatureAnswer(address.broker, BrokerFeatures({}, None), said)


def _exchanged(address: BrokerAddress, context: ssl.SSLContext | None, version: int) -> bytes:
    """Return the answer to one request, on a connection of its own. Raises OSError."""
    with socket.create_connection((address.host, address.port), TIMEOUT_S) as plain:
        plain.settimeout(TIMEOUT_S)
        connection = plain if context is None else context.wrap_socket(plain, server_hostname=address.host)
        with connection:
            connection.sendall(request_bytes(version, version, CLIENT, software_version().partition("+")[0]))
            length = int.from_bytes(_received(connection, 4), "big", signed=True)
            if not 0 <= length <= LONGEST_ANSWER:
                raise ConnectionError("this is not the answer of a Kafka broker: is it a listener with TLS?")
            return _received(connection, length)


def _received(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        part = connection.recv(length - len(content))
        if not part:
            raise ConnectionError("the broker closed the connection without an answer")
        content += part
    return bytes(content)


def _tls(config: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS of these settings of librdkafka, None without TLS. Raises OSError, or ValueError."""
    if config.get("security.protocol", "plaintext").lower() not in WITH_TLS:
        return None
    unreadable = [name for name in UNREADABLE if config.get(name)]
    if unreadable:
        raise ValueError(f"{unreadable[0]} cannot be used for this request: give files in the format PEM")
    place = config.get("ssl.ca.location", "")
    is_folder = bool(place) and Path(place).is_dir()
    # The word by which librdkafka looks for the system's certificates: Python does so without a place.
    known = place if place and place != "probe" else None
    context = ssl.create_default_context(cafile=None if is_folder else known, capath=known if is_folder else None)
    if config.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if config.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if config.get("ssl.certificate.location"):
        context.load_cert_chain(
            config["ssl.certificate.location"], config.get("ssl.key.location"), config.get("ssl.key.password")
        )
    return context


def _text(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())
