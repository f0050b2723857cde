"""Who changed a group, by the lines of the authorizer."""

import pytest

from coordinator_core.audit.folds.removals import done_by
from coordinator_core.audit.folds.witness import BrokerLines
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.lines import events
from coordinator_core.records import LogPosition

AT = 1_795_833_667_123
ALLOWED = (
    "[2026-11-28T02:41:07.123Z] DEBUG Principal = User:{who} is Allowed operation = DELETE from host = 10.0.0.5 on "
    "resource = Group:LITERAL:my shop for request = {request} with resourceRefCount = 1 based on rule MatchingAcl(x) "
    "(kafka.authorizer.logger)"
)
OLD = (
    "[2026-11-28T02:41:07.123Z] INFO Principal = User:bob is Denied Operation = Read from host = 10.0.0.5 on resource "
    "= Group:my shop (kafka.authorizer.logger)"
)


def line(text: str, number: int = 1) -> BrokerEvent:
    (found,) = events(text, "kafka-authorizer.log", number)
    return found


def allowed(who: str, request: str, number: int = 1) -> BrokerEvent:
    return line(ALLOWED.format(who=who, request=request), number)


def test_a_line_of_the_authorizer_names_principal_host_and_request() -> None:
    found = allowed("alice", "DeleteGroups")
    assert (found.kind, found.group_id) == (EventKind.REQUEST_ALLOWED, "my shop")
    assert (found.reason, found.timestamp_ms) == ("User:alice at 10.0.0.5: DeleteGroups", AT)
    denied = line(OLD)
    assert (denied.kind, denied.group_id) == (EventKind.REQUEST_DENIED, "my shop")
    assert denied.reason == "User:bob at 10.0.0.5: Read"


@pytest.mark.parametrize(("after_ms", "tells"), [(0, True), (3_000, True), (60_000, False), (-10, False)])
def test_the_request_of_that_time_tells_who_it_was(after_ms: int, tells: bool) -> None:
    lines = BrokerLines([allowed("alice", "DeleteGroups"), allowed("bob", "OffsetCommit", 2)])
    at = LogPosition(0, 7, AT + after_ms)
    found = done_by(lines, ("DeleteGroups",), at)
    assert (found is not None and found.reason) == (tells and "User:alice at 10.0.0.5: DeleteGroups")


def test_several_principals_tell_nothing() -> None:
    lines = BrokerLines([allowed("alice", "DeleteGroups"), allowed("bob", "DeleteGroups", 2)])
    assert done_by(lines, ("DeleteGroups",), LogPosition(0, 7, AT)) is None
