"""The types that a group can have."""

from enum import StrEnum


class GroupType(StrEnum):
    """Group types by the names of Kafka's Admin client; CONNECT is the one proposed on KIP-848."""

    CLASSIC = "CLASSIC"
    CONSUMER = "CONSUMER"
    SHARE = "SHARE"
    STREAMS = "STREAMS"
    CONNECT = "CONNECT"
