"""Whether a classic group of Kafka Streams or Connect can move to its new protocol, and what would refuse it.

Only what the group's own record shows is judged. Sources: KIP-1071 (Compatibility, Deprecation and Migration Plan),
Connect on KIP-848 (migration to the new protocol). Brokers up to 4.4 convert no such group while it has members, and
have no Connect groups on KIP-848 at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import STREAMS_PROTOCOL, subscription
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.classic.workers import classic_worker, is_connect_group
from coordinator_core.groups.described import DescribedMigration
from coordinator_core.groups.streams.classic_tasks import assigned_tasks
from coordinator_core.record_fields.embedded import StreamsSubscriptionInfo
from coordinator_core.wire.embedded import blob_of

HAS_MEMBERS = "the group has members: brokers up to 4.4 convert no group of this kind before they have left"
NO_CONNECT = "no release has Connect groups on KIP-848"
CONNECT_ASSIGNORS = ("default", "compatible", "sessioned")


def describe_migration(group: ClassicGroup) -> DescribedMigration | None:
    """Return where the group could go, and what refuses it; None: it is not of Streams or Connect, or unknown."""
    if is_connect_group(group):
        document = list(dict.fromkeys(_connect_refusals(group)))
        return {"to": "CONNECT", "refusedByReleases": [NO_CONNECT], "refusedByDocument": document}
    if group.protocol == STREAMS_PROTOCOL:
        document = list(dict.fromkeys(_streams_refusals(group)))
        releases = [HAS_MEMBERS] if group.members else []
        return {"to": "STREAMS", "refusedByReleases": releases, "refusedByDocument": document}
    return None


def _streams_refusals(group: ClassicGroup) -> Iterator[str]:
    for member in group.members.values():
        blob = subscription(group, member)
        info = None if blob is None else blob_of(StreamsSubscriptionInfo, blob.nested)
        if info is None:
            yield f"the embedded data of Streams of member {member.member_id} cannot be read"
            continue
        if any(sums.get("namedTopology") for sums in info.fields.get("taskOffsetSums", ())):
            yield "it has named topologies, which streams groups do not support"
        try:
            assigned_tasks(member.assignment)
        except DecodeError:
            yield f"the assignment of member {member.member_id} cannot be read"


def _connect_refusals(group: ClassicGroup) -> Iterator[str]:
    if group.members and group.protocol not in CONNECT_ASSIGNORS:
        yield f"the workers' assignor {group.protocol!r} is none of Connect's: a new worker has to offer it, too"
    for member in group.members.values():
        worker = classic_worker(group, member)
        if worker.url is None or worker.runs is None:
            yield f"what worker {member.member_id} runs cannot be read"
