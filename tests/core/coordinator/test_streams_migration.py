"""Threads of both protocols in one group (KIP-1071, online migration), whatever they do in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.protocol import ErrorCode, Request
from coordinator_core.coordinator.streams import classic_blobs
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from tests.core.coordinator.clients import Cluster
from tests.core.coordinator.test_coordinator_properties import check_compacted, in_bytes
from tests.core.coordinator.test_streams import check_processes
from tests.core.coordinator.transcript import GROUP, Play

BEGINNING = """\
config group.streams.initial.rebalance.delay.ms=0 group.streams.assignment.interval.ms=0
profile kip-1071
group streams.num.standby.replicas=1
topics in=4 store=4
topology app epoch=0 0=in 0.changelog=store
topology next epoch=1 0=in 0.changelog=store
loads 7 T1=0_0,0_1/0_2,0_3 T2=0_2,0_3/0_0,0_1
"""
STEPS = (
    *(f"thread {name} {action}" for name in ("T1", "T2") for action in ("join", "sync", "beat", "leave")),
    *(f"streams {name} {action}" for name in ("A", "B") for action in ("beat", "leave", "join topology=app")),
    "streams A beat",
    "streams B beat offsets=0_0:9,0_1:9,0_2:9,0_3:9 ends=0_0:9,0_1:9,0_2:9,0_3:9",
    "streams B join topology=next",
    "wait 10",
    "wait 46",
    "topics in=5",
)


def begun() -> Play:
    play = Play()
    for line in BEGINNING.splitlines():
        list(play.command(line))
    return play


@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_any_script_keeps_the_invariants(script: list[str]) -> None:
    play = begun()
    for line in script:
        list(play.command(line))
        group = play.memory.live.get(GROUP)
        if isinstance(group, LiveStreamsGroup):
            check_processes(group)
            active = [
                (key, number)
                for member in group.log.members.values()
                for tasks in (member.assigned.active, member.pending_revocation.active)
                for key, numbers in tasks.items()
                for number in numbers
            ]
            assert len(active) == len(set(active))
            assert group.classic.keys() <= group.log.members.keys()
            assert group.assignment_epoch <= group.group_epoch
    for record in play.log:
        in_bytes(record)


def test_a_rolled_application_ends_up_with_the_streams_protocol() -> None:
    """Threads are replaced one by one; every task runs once at the end, and nothing of the old protocol is left."""
    play = begun()
    for old, new in (("T1", "A"), ("T2", "B")):
        list(play.command(f"thread {old} leave"))
        list(play.command(f"streams {new} join topology=app"))
        for _ in range(12):
            for line in (f"streams {name} beat" for name in ("A", "B") if name in play.clients):
                list(play.command(line))
            if old == "T1":
                for action in ("beat", "join", "sync"):
                    list(play.command(f"thread T2 {action}"))
            list(play.command("wait 1"))
    group = play.memory.live[GROUP]
    assert isinstance(group, LiveStreamsGroup)
    assert group.log.members.keys() == {"A", "B"}
    assert not group.classic
    assert sorted(number for member in group.log.members.values() for number in member.assigned.active["0"]) == [
        0,
        1,
        2,
        3,
    ]


def test_the_classic_group_after_the_migration_loads_again() -> None:
    play = begun()
    for line in (
        "streams A join topology=app",
        "thread T1 beat",
        "thread T1 join",
        "thread T1 sync",
        "streams A leave",
    ):
        list(play.command(line))
    assert isinstance(play.memory.live[GROUP], LiveClassicGroup)
    check_compacted(Cluster(play.memory, play.topics, play.now, play.log))


@pytest.mark.parametrize(
    ("name", "instance_id", "error"),
    [
        ("T3", "one", 0),
        ("", "one", 0),
        ("T3", None, 0),
        ("T2", "one", ErrorCode.FENCED_INSTANCE_ID),
        ("nobody", "one", ErrorCode.FENCED_INSTANCE_ID),
        ("T3", "two", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_thread_leaves_by_its_own_ids(name: str, instance_id: str | None, error: int) -> None:
    """The ids of a LeaveGroup are of one member (KIP-345), as in groups of the other types."""
    play = begun()
    for line in ("streams A join topology=app", "thread T3 join instance=one"):
        list(play.command(line))
    group = play.memory.live[GROUP]
    assert isinstance(group, LiveStreamsGroup)
    before = set(group.log.members)
    static_id = play.clients["T3"].member_id
    members = [{"memberId": static_id if name == "T3" else name, "groupInstanceId": instance_id}]
    request = Request("LeaveGroup", 5, "client", {"groupId": GROUP, "members": members})
    outcome = coordinator.handle(play.memory, request, play.topics, play.now, iter(()))
    assert outcome.response is not None
    assert [each["errorCode"] for each in outcome.response["members"]] == [error]
    assert before - group.log.members.keys() == (set() if error else {static_id})


@pytest.mark.parametrize(
    ("subtopology_id", "is_number"),
    [("0", True), ("2147483647", True), ("2147483648", False), ("0" * 5_000 + "7", True), ("9" * 5_000, False)],
)
def test_a_number_of_a_subtopology_fits_an_integer_of_the_classic_protocol(subtopology_id, is_number):
    assert classic_blobs.is_known_by_number(subtopology_id) is is_number
