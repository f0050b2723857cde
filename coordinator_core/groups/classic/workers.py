"""Workers of a Connect group on the classic protocol: their URLs, and what they run after the last rebalance."""

from typing import NamedTuple

from coordinator_core.assignors.connect.work import ConnectorsAndTasks, target, worker, worker_assignment
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE, assignment, subscription
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.record_fields.embedded import ConnectProtocolAssignment, ConnectProtocolMetadata
from coordinator_core.wire.embedded import blob_of


class ClassicWorker(NamedTuple):
    """A worker: ``runs`` is what it runs once it has followed its last assignment.

    None where the bytes of the log cannot be read.
    """

    url: str | None
    runs: ConnectorsAndTasks | None


def is_connect_group(group: ClassicGroup) -> bool:
    """Whether the members are Connect workers."""
    return group.protocol_type == CONNECT_PROTOCOL_TYPE


def classic_worker(group: ClassicGroup, member: ClassicMember) -> ClassicWorker:
    """Return a member of a Connect group as a worker.

    An incremental assignment (KIP-415) says what is new and what is revoked; the rest is in the worker's metadata.
    """
    metadata = blob_of(ConnectProtocolMetadata, subscription(group, member))
    assigned = blob_of(ConnectProtocolAssignment, assignment(group, member))
    if metadata is None:
        return ClassicWorker(None, None)
    known = worker(metadata)
    if assigned is None:
        return ClassicWorker(known.url, None if member.assignment else ConnectorsAndTasks.of())
    name = member.member_id
    return ClassicWorker(known.url, target({name: known}, {name: worker_assignment(assigned.fields)})[name])
