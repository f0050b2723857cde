"""Whether a classic group can move to a new protocol, and what would refuse it.

Judged is what the group's own record shows, and the two settings of brokers that may refuse it, where snapshots show
them. Sources: KIP-848 (Consumer Group Migration), KIP-1071 (Compatibility, Deprecation and Migration Plan), Connect
on KIP-848 (migration to the new protocol). Brokers up to 4.4 convert a group with members only if they are consumers,
and have no Connect groups on KIP-848 at all.
"""

from collections.abc import Iterator

from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, assignment, subscription
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.classic.workers import classic_worker, is_connect_group
from coordinator_core.groups.consumer_protocol import assigned_tasks
from coordinator_core.groups.described import DescribedMigration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.setting_bounds import MAX_SIZES, MIGRATION_POLICY, OfBrokers
from coordinator_core.record_fields.embedded import ConsumerProtocolAssignment, StreamsSubscriptionInfo
from coordinator_core.wire.embedded import blob_of

HAS_MEMBERS = "the group has members: brokers up to 4.4 convert no group of this kind before they have left"
NO_CONNECT = "no release has Connect groups on KIP-848"
CONNECT_ASSIGNORS = ("default", "compatible", "sessioned")
MAX_SIZE = MAX_SIZES[GroupType.CONSUMER]
UPGRADES = ("upgrade", "bidirectional")
"""The values of the policy with which brokers upgrade a group that has members."""


def describe_migration(group: ClassicGroup, of_brokers: OfBrokers) -> DescribedMigration | None:
    """Return where the group could go, and what refuses it; None: its protocol type has no new protocol, or is unknown.

    ``of_brokers`` returns a setting of the brokers, None if no snapshot shows it. A group without members goes wherever
    its next member wants, if that is a consumer or a thread of Streams.
    """
    if is_connect_group(group):
        document = list(dict.fromkeys(_connect_refusals(group)))
        return {"to": "CONNECT", "refusedByReleases": [NO_CONNECT], "refusedByDocument": document, "notShown": []}
    if group.protocol == STREAMS_PROTOCOL:
        document = list(dict.fromkeys(_streams_refusals(group)))
        releases = [HAS_MEMBERS] if group.members else []
        return {"to": "STREAMS", "refusedByReleases": releases, "refusedByDocument": document, "notShown": []}
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE:
        refusals = list(dict.fromkeys([*_refused_by_settings(group, of_brokers), *_consumer_refusals(group)]))
        to = "CONSUMER" if group.members else "CONSUMER or STREAMS"
        not_shown = [name for name in (MIGRATION_POLICY, MAX_SIZE) if group.members and of_brokers(name) is None]
        return {"to": to, "refusedByReleases": refusals, "refusedByDocument": refusals, "notShown": not_shown}
    return None


def _refused_by_settings(group: ClassicGroup, of_brokers: OfBrokers) -> Iterator[str]:
    policy, most = of_brokers(MIGRATION_POLICY), int_setting(of_brokers(MAX_SIZE) or "")
    if group.members and policy is not None and policy.lower() not in UPGRADES:
        yield f"brokers upgrade no group that has members: {MIGRATION_POLICY}={policy}"
    if most is not None and len(group.members) > most:
        yield f"the group has more members than {MAX_SIZE}={most}"


def _consumer_refusals(group: ClassicGroup) -> Iterator[str]:
    for member in group.members.values():
        subscribed = subscription(group, member)
        assigned = blob_of(ConsumerProtocolAssignment, assignment(group, member))
        if subscribed is None or subscribed.is_short:
            yield f"brokers cannot read the metadata of member {member.member_id}"
        elif member.assignment and assigned is None:
            yield f"brokers cannot read the assignment of member {member.member_id}"
        elif assigned is not None and assigned.fields["userData"]:
            whose = f"the assignment of member {member.member_id} has data of the assignor {group.protocol!r}"
            yield f"{whose}: brokers take that for a custom assignor"


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
