"""Fields of the control records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from __future__ import annotations

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes, UnknownTaggedFields


@final
class KRaftVersionRecord(TrailingBytes, UnknownTaggedFields):
    """A control record."""

    version: int
    """Version of this record."""
    kRaftVersion: int
    """The version of KRaft: 1 allows voters to come and go."""
    _type: NotRequired[Literal["KRaftVersionRecord"]]
    """In no record: it sets this type apart."""


@final
class VotersRecordEndpoint(UnknownTaggedFields):
    """Struct of ``endpoints``."""

    name: str
    """Name of the listener."""
    host: str
    """Host."""
    port: int
    """Port."""


@final
class VotersRecordKRaftVersionFeature(UnknownTaggedFields):
    """Struct of ``kRaftVersionFeature``."""

    minSupportedVersion: int
    """The lowest."""
    maxSupportedVersion: int
    """The highest."""


@final
class VotersRecordVoter(UnknownTaggedFields):
    """Struct of ``voters``."""

    voterId: int
    """Node id."""
    voterDirectoryId: str
    """Its directory with the metadata log."""
    endpoints: list[VotersRecordEndpoint]
    """Where it listens."""
    kRaftVersionFeature: VotersRecordKRaftVersionFeature
    """Versions of KRaft that it supports."""


@final
class VotersRecord(TrailingBytes, UnknownTaggedFields):
    """A control record."""

    version: int
    """Version of this record."""
    voters: list[VotersRecordVoter]
    """The voters."""
    _type: NotRequired[Literal["VotersRecord"]]
    """In no record: it sets this type apart."""


@final
class LeaderChangeMessageVoter(UnknownTaggedFields):
    """Struct of ``voters``, ``grantingVoters``."""

    voterId: int
    """Node id."""


@final
class LeaderChangeMessage(TrailingBytes, UnknownTaggedFields):
    """A control record."""

    version: int
    """What the leader's KRaft version asks for: 0, or 1 with KIP-853."""
    leaderId: int
    """The elected leader."""
    voters: list[LeaderChangeMessageVoter]
    """The voters of the quorum."""
    grantingVoters: list[LeaderChangeMessageVoter]
    """Those who voted for the leader."""
    _type: NotRequired[Literal["LeaderChangeMessage"]]
    """In no record: it sets this type apart."""


@final
class SnapshotFooterRecord(TrailingBytes, UnknownTaggedFields):
    """A control record."""

    version: int
    """Version of this record."""
    _type: NotRequired[Literal["SnapshotFooterRecord"]]
    """In no record: it sets this type apart."""


@final
class SnapshotHeaderRecord(TrailingBytes, UnknownTaggedFields):
    """A control record."""

    version: int
    """Version of this record."""
    lastContainedLogTimestamp: int
    """Append time of the last record in it, ms."""
    _type: NotRequired[Literal["SnapshotHeaderRecord"]]
    """In no record: it sets this type apart."""
