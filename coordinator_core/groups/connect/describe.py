"""What is derived from a Connect group's records, and how it is described; Kafka's Admin client has no call for it."""

from collections.abc import Iterable

from coordinator_core.assignors.connect.selection import VersionRange, select_assignor, select_worker
from coordinator_core.assignors.connect.work import ConnectorOrTask, ConnectorsAndTasks
from coordinator_core.errors import AssignorError, DecodeError
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.classic.workers import classic_worker
from coordinator_core.groups.connect.state import (
    CLASSIC_VERSION,
    ConnectGroup,
    ConnectGroupState,
    ConnectMember,
    Work,
    is_classic,
    is_to_be_downgraded,
    left_over,
    max_delay_ms,
    units,
)
from coordinator_core.groups.described import DescribedConnectGroup, DescribedWork, DescribedWorker
from coordinator_core.record_fields.embedded import ConnectProtocolMetadata
from coordinator_core.records import ConnectRecordType
from coordinator_core.wire.embedded import blob_of, decode_blob

METADATA_BLOB = "ConnectProtocolMetadata"
"""What Connect's own assignors put into the metadata of a worker: its URL, and how far it read the config topic."""

CURRENT = ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT
CONFIGURATION = ConnectRecordType.CONFIGURATION
TARGET = ConnectRecordType.TARGET_ASSIGNMENT


def target_epoch(group: ConnectGroup, certainty: Certainty = CERTAIN) -> int | None:
    """Return the epoch of the target: 0 before the first one (KIP-848, empty group); None where it is not known."""
    has_none = group.assignment_epoch is None and certainty.knows(TARGET)
    return 0 if has_none else group.assignment_epoch


def group_state(group: ConnectGroup, certainty: Certainty = CERTAIN) -> ConnectGroupState | None:
    """Return the group's state; None if the log has not shown what it depends on."""
    if not group.members:
        return ConnectGroupState.EMPTY if certainty.members_are_known else None
    epoch = target_epoch(group, certainty)
    if group.group_epoch is None or epoch is None:
        return None
    if group.group_epoch > epoch:
        return ConnectGroupState.ASSIGNING
    known = [member for member in group.members.values() if certainty.knows(CURRENT, member.member_id)]
    if not all(is_reconciled(group, member) for member in known):
        return ConnectGroupState.RECONCILING
    is_all = certainty.members_are_known and len(known) == len(group.members)
    return ConnectGroupState.STABLE if is_all else None


def is_reconciled(group: ConnectGroup, member: ConnectMember) -> bool:
    """Whether the worker is at the target epoch and runs exactly its target."""
    target = group.targets.get(member.member_id)
    if member.current is None or member.member_epoch != group.assignment_epoch:
        return False
    return set(units(member.current.work)) == set(units(target.work if target else Work()))


def worker_url(member: ConnectMember) -> str | None:
    """Return the URL of a worker, None where no assignor of it has metadata that says so."""
    for assignor in member.assignors:
        try:
            blob = blob_of(ConnectProtocolMetadata, decode_blob(METADATA_BLOB, assignor.metadata))
        except DecodeError:
            continue
        if blob is not None:
            return blob.fields["url"]
    return None


def common_assignor(group: ConnectGroup) -> str | None:
    """Return the assignor that all workers offer, None if there is none."""
    try:
        return select_assignor({worker: [a.name for a in member.assignors] for worker, member in group.members.items()})
    except AssignorError:
        return None


def worker_ranges(group: ConnectGroup, assignor: str) -> dict[str, VersionRange]:
    """Return by worker the metadata versions that its assignor of this name supports, in the group's order."""
    return {
        # -1 only marks metadata of the classic protocol: no assignor computes in that version.
        member_id: VersionRange(max(supported.minimum_version, CLASSIC_VERSION + 1), supported.maximum_version)
        for member_id, member in group.members.items()
        for supported in member.assignors
        if supported.name == assignor
    }


def is_without_computing_worker(group: ConnectGroup) -> bool:
    """Whether the log shows that no worker can compute a target, as none supports the versions of all (FATAL).

    A group that is to be downgraded needs none.
    """
    if is_to_be_downgraded(group):
        return False
    return common_assignor(group) is not None and computing_worker(group, None) is None


def computing_worker(group: ConnectGroup, former: str | None) -> str | None:
    """Return the worker that the coordinator chooses to compute the next target, after ``former`` computed the last.

    None: it cannot choose one.
    """
    assignor = common_assignor(group)
    if assignor is None:
        return None
    able = [worker for worker, member in group.members.items() if not is_classic(member)]
    try:
        return select_worker(worker_ranges(group, assignor), former, able)
    except AssignorError:
        return None


def knows_assignors(group: ConnectGroup, certainty: Certainty) -> bool:
    """Return whether it is known which assignors each worker offers."""
    return certainty.members_are_known and all(member.client_id is not None for member in group.members.values())


def describe_connect(group_id: str, group: ConnectGroup, certainty: Certainty = CERTAIN) -> DescribedConnectGroup:
    """Return the group with its epochs, work, and workers; null is what the log has not shown.

    ``assignmentError`` is the error that the assignor reported with the target (0:
    none). ``unassigned`` is the work in no worker's target.
    """
    epoch, has_work = target_epoch(group, certainty), group.work_epoch is not None
    has_target = epoch is not None
    is_known = knows_assignors(group, certainty)
    return {
        "groupId": group_id,
        "groupState": group_state(group, certainty),
        "groupEpoch": group.group_epoch,
        "targetAssignmentEpoch": epoch,
        "partitionAssignor": common_assignor(group) if is_known else None,
        "assignmentError": max((target.error for target in group.targets.values()), default=0) if has_target else None,
        "work": _work(units(group.work)) if has_work else None,
        "unassigned": _work(left_over(group)) if has_work and has_target and certainty.members_are_known else None,
        "scheduledRebalanceMaxDelayMs": max_delay_ms(group) if certainty.knows(CONFIGURATION) else None,
        "members": [_member(group, member, epoch) for _, member in sorted(group.members.items())],
    }


def describe_classic_connect(group_id: str, group: ClassicGroup, state: str | None) -> DescribedConnectGroup:
    """Return a Connect group on the classic protocol in the form of ``describe_connect``.

    What is configured, and so what is unassigned, is not in its log.
    """
    return {
        "groupId": group_id,
        "groupState": state,
        "groupEpoch": None,
        "targetAssignmentEpoch": None,
        "partitionAssignor": group.protocol or "",
        "assignmentError": None,
        "work": None,
        "unassigned": None,
        "scheduledRebalanceMaxDelayMs": None,
        "members": [_classic_member(group, member) for _, member in sorted(group.members.items())],
    }


def _member(group: ConnectGroup, member: ConnectMember, epoch: int | None) -> DescribedWorker:
    target = group.targets.get(member.member_id)
    return {
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "rackId": None,
        "url": worker_url(member),
        "memberEpoch": member.member_epoch,
        "state": _worker_state(member, epoch),
        "assignors": [
            {
                "name": assignor.name,
                "minimumVersion": assignor.minimum_version,
                "maximumVersion": assignor.maximum_version,
            }
            for assignor in member.assignors
        ],
        "assignment": None if member.current is None else _work(units(member.current.work)),
        "targetAssignment": None if epoch is None else _work(units(target.work) if target else ()),
    }


def _worker_state(member: ConnectMember, epoch: int | None) -> str | None:
    """Return the worker's own state: it has joined, and either runs its target or has not got it yet."""
    if member.member_epoch is None or epoch is None:
        return None
    return "STABLE" if member.member_epoch == epoch else "COMPLETING_REBALANCE"


def _classic_member(group: ClassicGroup, member: ClassicMember) -> DescribedWorker:
    known = classic_worker(group, member)
    return {
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "rackId": None,
        "url": known.url,
        "memberEpoch": None,
        "state": "STABLE" if group.protocol else None,
        "assignors": None,
        "assignment": None if known.runs is None else _work(known.runs.units()),
        "targetAssignment": None,
    }


def _work(some: Iterable[ConnectorOrTask]) -> DescribedWork:
    """Return connectors by name, and tasks as Connect names them, in order."""
    some = list(some)
    work = ConnectorsAndTasks.of(
        (unit for unit in some if isinstance(unit, str)), (unit for unit in some if not isinstance(unit, str))
    ).sorted()
    return {"connectors": list(work.connectors), "tasks": [f"{connector}-{number}" for connector, number in work.tasks]}
