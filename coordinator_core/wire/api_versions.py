"""ApiVersions: the request for what a broker supports, and its answer (KIP-35, KIP-511, KIP-584).

A broker answers it before a client has logged in.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator_core.errors import DecodeError
from coordinator_core.wire.codec import reader, writer
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.primitives import scalar_reader, scalar_writer
from coordinator_core.wire.schema import request_schemas

API: Final = "ApiVersions"
VERSIONS: Final = (4, 3)
"""The versions of the request that are tried, the best first: answers before version 3 have no features."""

HEADER_VERSION: Final = 2
UNSUPPORTED_VERSION: Final = 35


class BrokerFeatures(NamedTuple):
    """Levels of features by name: the highest that a broker supports, and those of the cluster.

    ``finalized``: None if the broker does not know them.
    """

    supported: Mapping[str, int]
    finalized: Mapping[str, int] | None


def request_bytes(version: int, correlation_id: int, client_id: str, client_version: str) -> bytes:
    """Return the request as it is sent, its length first."""
    schema = request_schemas()[API]
    header = {
        "requestApiKey": schema.key,
        "requestApiVersion": version,
        "correlationId": correlation_id,
        "clientId": client_id,
    }
    body = {"clientSoftwareName": client_id, "clientSoftwareVersion": client_version}
    content = bytearray()
    writer(layout(schema.header, HEADER_VERSION))(content, header)
    writer(layout(schema.request, version))(content, body)
    length = bytearray()
    scalar_writer("int32")(length, len(content))
    return bytes(length + content)


def features(answer: bytes, version: int, correlation_id: int) -> BrokerFeatures | None:
    """Return the features in an answer (without its length); None: the broker does not support this version.

    Raises:
        DecodeError: it is not an answer to this request, or has an error.
    """
    read_int32, read_int16 = scalar_reader("int32"), scalar_reader("int16")
    answered, position = read_int32(answer, 0)
    if answered != correlation_id:
        raise DecodeError(f"the answer is to request {answered}, not {correlation_id}", record_type=API)
    error, _ = read_int16(answer, position)
    if error == UNSUPPORTED_VERSION:
        return None
    if error:
        raise DecodeError(f"error {error}", record_type=API)
    try:
        fields, end = reader(layout(request_schemas()[API].response, version))(answer, position)
    except DecodeError as found:
        raise found.within("", record_type=API) from None
    if end != len(answer):
        raise DecodeError(f"{len(answer) - end} bytes after its fields", record_type=API, position=end)
    supported = {feature["name"]: feature["maxVersion"] for feature in fields.get("supportedFeatures", ())}
    finalized = {feature["name"]: feature["maxVersionLevel"] for feature in fields.get("finalizedFeatures", ())}
    return BrokerFeatures(supported, finalized if fields.get("finalizedFeaturesEpoch", -1) >= 0 else None)
