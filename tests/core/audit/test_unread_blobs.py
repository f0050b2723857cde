"""What a member of a classic group asks for, or was assigned, in bytes that no schema reads: it accuses nobody."""

import pytest

from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.groups.certainty import CERTAIN
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.owners import UNKNOWN, owners, possible_owners
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.grounds import UNREAD_ASSIGNMENT, UNREAD_ASSIGNMENT_BEFORE
from coordinator_core.records import Fields
from coordinator_core.wire.embedded import decode_blob, encode_blob
from jobs.settings import load
from tests.core.history.logs import GROUP, GroupLog, classic, commit, eager_worker, existing, generation, kinds
from tests.core.known_topics import at_end
from tests.core.whole_log import judge

LIMITS = load(environment={}).findings
HOUR = 3_600_000
NO_BLOB = b"\x00\x03\xff"
SECOND = {"in": [1, 2]}


def assigned(blob: bytes) -> Fields:
    """A consumer that reads the topic, with this assignment."""
    return {**classic({}, "in"), "assignment": blob}


def of_streams() -> bytes:
    partitions = [{"topic": "in", "partitions": [1, 2]}]
    return encode_blob("ConsumerProtocolAssignment", 1, {"assignedPartitions": partitions, "userData": NO_BLOB})


def read_by_two(protocol: str = "range", **second: Fields) -> GroupLog:
    """A member has all partitions until a second one comes, of which something cannot be read, and that then can be."""
    log = GroupLog().write(generation(1, {"a": classic({"in": [0, 1, 2]})}, protocol))
    return log.write(generation(2, {"a": classic({"in": [0]}), **second}, protocol))


def history(log: GroupLog) -> GroupHistory:
    return GroupHistory.gather(GROUP, HOUR, log.rows(existing(**{"in": 3})), at_end({"in": 3}), NO_SHARE_LOGS)


def found(log: GroupLog) -> list[str]:
    return [f"{row.kind}: {row.detail}" for row in findings(history(log), LIMITS)]


@pytest.mark.parametrize(("protocol", "blob"), [("range", NO_BLOB), ("stream", of_streams())])
def test_what_is_in_an_assignment_that_cannot_be_read_is_not_missing(protocol: str, blob: bytes) -> None:
    log = read_by_two(protocol, b=assigned(blob))
    assert found(log) == []
    assert [row.missing for row in history(log).epochs] == [None, UNREAD_ASSIGNMENT]
    assert [row.units_lost for row in history(log).rebalances] == [0, None]


def test_the_next_generation_does_not_say_what_it_moved() -> None:
    log = read_by_two(b=assigned(NO_BLOB)).write(generation(3, {"a": classic({"in": [0]}), "b": classic(SECOND)}))
    log.write(generation(4, {"a": classic({"in": [0, 1]}), "b": classic({"in": [2]})}))
    assert found(log) == []
    rows = history(log).rebalances
    assert [row.missing for row in rows] == [None, UNREAD_ASSIGNMENT, UNREAD_ASSIGNMENT_BEFORE, None]
    assert [row.units_moved for row in rows] == [0, None, None, 1]
    assert kinds(rows[2]) == ["unknown"], "the leader did know the partitions before"


def test_a_subscription_that_cannot_be_read_does_not_change() -> None:
    unread = {**classic(SECOND), "subscription": NO_BLOB}
    log = read_by_two(b=unread).write(generation(3, {"a": classic({"in": [0]}), "b": classic(SECOND)}))
    assert [kinds(row) for row in history(log).rebalances][1:] == [["member_joined"], ["unknown"]]
    assert found(log) == []


def test_the_work_of_a_worker_that_cannot_be_read_is_not_lost() -> None:
    log = GroupLog().write(generation(1, {"w1": eager_worker({"c": [-1, 0, 1]})}, "default", protocolType="connect"))
    unread = {**eager_worker({}), "assignment": NO_BLOB}
    log.write(generation(2, {"w1": eager_worker({"c": [-1]}), "w2": unread}, "default", protocolType="connect"))
    assert found(log) == []
    assert [row.units_lost for row in history(log).rebalances] == [0, None]


def test_what_a_member_says_that_it_has_is_compared_with_what_can_be_read() -> None:
    log = read_by_two("cooperative-sticky", b=assigned(NO_BLOB))
    fields = decode_blob("ConsumerProtocolSubscription", classic({}, "in", owned=SECOND)["subscription"]).fields
    says = encode_blob("ConsumerProtocolSubscription", 3, {**fields, "generationId": 2})
    again = {**classic(SECOND), "subscription": says}
    log.write(generation(3, {"a": classic({"in": [0]}), "b": again}, "cooperative-sticky"))
    assert violations(log) == []
    readable = read_by_two("cooperative-sticky", b=classic({}, "in"))
    readable.write(generation(3, {"a": classic({"in": [0]}), "b": again}, "cooperative-sticky"))
    assert violations(readable) == ["owned_not_assigned"]


def test_a_commit_may_be_of_the_member_whose_assignment_cannot_be_read() -> None:
    assert violations(read_by_two(b=assigned(NO_BLOB)).write(commit("in", 1))) == []
    assert violations(read_by_two(b=classic({}, "in")).write(commit("in", 1))) == ["commit_by_no_owner"]


def test_a_member_whose_assignment_cannot_be_read_may_own_any_partition() -> None:
    group = Group(GROUP, from_start=True)
    for record in read_by_two(b=assigned(NO_BLOB)).records:
        group.apply(record)
    assert [(each.member_id, each.partition) for each in owners([group], None, "in")] == [("a", 0)]
    (unread,) = possible_owners([GroupThen(group, GroupOffsets(), CERTAIN)], None, "in")
    assert (unread.member_id, unread.partition, unread.role) == ("b", None, UNKNOWN)


def violations(log: GroupLog) -> list[str]:
    rows = judge(log.records, Group(GROUP, from_start=True), Coverage({0: [(0, 10_000)]}))
    return [str(row.rule) for row in rows]
