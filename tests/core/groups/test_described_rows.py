"""What descriptions say beyond Kafka's Admin client: own settings, migration, traffic of a rebalance, worker states."""

from dataclasses import fields, replace

import pytest

from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.groups.classic.describe import join_traffic
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.connect.describe import describe_connect
from coordinator_core.groups.connect.state import ConnectGroup, ConnectMember
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.migration import HAS_MEMBERS, MAX_SIZE, MIGRATION_POLICY, NO_CONNECT, describe_migration
from coordinator_core.groups.setting_bounds import BOUNDS, DEFAULTS, PROTOCOLS, describe_settings

STREAMS = ClassicGroup(3, "consumer", "stream", "m")
NOT_SHOWN = dict[str, str]().get


def test_bounds_are_those_of_the_model() -> None:
    known = {each.name.replace("_", ".") for each in fields(BrokerConfig)}
    assert {name for bounds in BOUNDS.values() for name in bounds if isinstance(name, str)} <= known


@pytest.mark.parametrize(
    ("group_type", "settings", "brokers", "problem"),
    [
        (
            "CONSUMER",
            {"consumer.session.timeout.ms": "1000"},
            {},
            "below 45000, the default of group.consumer.min.session.timeout.ms; a snapshot would show",
        ),
        (
            "CONSUMER",
            {"consumer.session.timeout.ms": "50000"},
            {"group.consumer.heartbeat.interval.ms": "60000"},
            "not above group.consumer.heartbeat.interval.ms=60000",
        ),
        (
            "CONSUMER",
            {"consumer.session.timeout.ms": "1000"},
            {"group.consumer.min.session.timeout.ms": "45000"},
            "below group.consumer.min.session.timeout.ms=45000",
        ),
        ("CONSUMER", {"consumer.session.timeout.ms": "1000"}, {"group.consumer.min.session.timeout.ms": "500"}, None),
        (
            "STREAMS",
            {"group.streams.num.warmup.replicas": "30"},
            {"group.streams.max.warmup.replicas": "20"},
            "above group.streams.max.warmup.replicas=20",
        ),
        (
            "SHARE",
            {"share.assignment.interval.ms": "20000"},
            {},
            "above 15000, the default of group.share.max.assignment",
        ),
        ("STREAMS", {"streams.acceptable.recovery.lag": "-1"}, {}, "below the lowest value, 0"),
        ("CONSUMER", {"streams.num.standby.replicas": "1"}, {}, "no effect on this group of type CONSUMER"),
        ("SHARE", {"share.heartbeat.interval.ms": "5000"}, {PROTOCOLS: "classic,consumer"}, "not enabled the protocol"),
        ("SHARE", {"share.isolation.level": "read_committed"}, {PROTOCOLS: "classic,share"}, None),
    ],
)
def test_a_setting_that_does_not_hold_says_why(
    group_type: GroupType, settings: dict[str, str], brokers: dict[str, str], problem: str | None
) -> None:
    (row,) = describe_settings(GroupType(group_type), settings, brokers.get)
    assert (row["problem"] is None) == (problem is None)
    assert (problem or "") in (row["problem"] or "")


def test_a_group_of_streams_moves_once_its_members_have_left() -> None:
    broken = replace(STREAMS, members={"m": ClassicMember("m", "c", "/h", 1, 1, None, b"no subscription", b"")})
    known = {"refusedByReleases": [], "refusedByDocument": [], "notShown": []}
    assert describe_migration(STREAMS, NOT_SHOWN) == {"to": "STREAMS", **known}
    told = describe_migration(broken, NOT_SHOWN)
    assert told is not None
    assert told["refusedByReleases"] == [HAS_MEMBERS]
    assert told["refusedByDocument"] == ["the embedded data of Streams of member m cannot be read"]
    assert describe_migration(ClassicGroup(), NOT_SHOWN) is None


def test_a_group_of_consumers_moves_with_its_members() -> None:
    """An empty group moves, too, and to Streams as well; data in an assignment is that of a custom assignor."""
    of_range = replace(STREAMS, protocol="range")
    known = {"refusedByReleases": [], "refusedByDocument": [], "notShown": []}
    assert describe_migration(of_range, NOT_SHOWN) == {"to": "CONSUMER or STREAMS", **known}

    def refusals(subscription: bytes, assignment: bytes) -> list[str]:
        member = ClassicMember("m", "c", "/h", 1, 1, None, subscription, assignment)
        told = describe_migration(replace(of_range, members={"m": member}), NOT_SHOWN)
        assert told is not None
        assert told["to"] == "CONSUMER"
        return told["refusedByReleases"]

    old = bytes.fromhex("0000 00000000 ffffffff")
    assert refusals(old, old) == refusals(old, b"") == []
    assert refusals(old, bytes.fromhex("0000 00000000 00000000")) == [], "empty data is none"
    assert "custom assignor" in refusals(old, bytes.fromhex("0000 00000000 00000001 aa"))[0]
    short = bytes.fromhex("0001 00000000 ffffffff")
    assert refusals(short, old) == ["brokers cannot read the metadata of member m"]
    assert refusals(old, b"no assignment") == ["brokers cannot read the assignment of member m"]


@pytest.mark.parametrize(
    ("policy", "size", "refused"),
    [
        ("bidirectional", "2", []),
        ("UPGRADE", "2", []),
        ("downgrade", "2", [f"brokers upgrade no group that has members: {MIGRATION_POLICY}=downgrade"]),
        ("bidirectional", "1", [f"the group has more members than {MAX_SIZE}=1"]),
    ],
)
def test_settings_of_brokers_refuse_a_group_that_has_members(policy: str, size: str, refused: list[str]) -> None:
    """Where no snapshot shows them, that is said; an empty group has nothing to upgrade."""
    blob = bytes.fromhex("0000 00000000 ffffffff")
    members = {name: ClassicMember(name, "c", "/h", 1, 1, None, blob, b"") for name in "ab"}
    of_range = replace(STREAMS, protocol="range", members=members)
    shown = {MIGRATION_POLICY: policy, MAX_SIZE: size}
    told, empty, open_ = (
        describe_migration(*given)
        for given in ((of_range, shown.get), (replace(of_range, members={}), shown.get), (of_range, NOT_SHOWN))
    )
    assert told is not None
    assert (told["refusedByReleases"], told["refusedByDocument"], told["notShown"]) == (refused, refused, [])
    assert empty is not None
    assert (empty["refusedByReleases"], empty["notShown"]) == ([], [])
    assert open_ is not None
    assert (open_["refusedByReleases"], open_["notShown"]) == ([], [MIGRATION_POLICY, MAX_SIZE])


def test_workers_of_a_foreign_assignor_do_not_move() -> None:
    worker = ClassicMember("w", "c", "/h", 1, 1, None, b"", b"")
    told = describe_migration(ClassicGroup(1, "connect", "ours", "w", members={"w": worker}), NOT_SHOWN)
    assert told is not None
    assert (told["to"], told["refusedByReleases"]) == ("CONNECT", [NO_CONNECT])
    assert told["refusedByDocument"][0].startswith("the workers' assignor 'ours' is none of Connect's")
    assert told["refusedByDocument"][1] == "what worker w runs cannot be read"


def test_one_rebalance_sends_the_metadata_of_all_members_to_the_leader() -> None:
    members = {name: ClassicMember(name, "c", "/h", 1, 1, None, b"12345", b"123") for name in "abcd"}
    sent = join_traffic(replace(STREAMS, members=members))
    assert sent == {"members": 4, "metadataBytes": 20, "assignmentBytes": 12, "rebalanceBytes": 64, "ifAllGotAll": 100}


@pytest.mark.parametrize(
    ("epoch", "target", "state"),
    [(2, 2, "STABLE"), (1, 2, "COMPLETING_REBALANCE"), (None, 2, None), (0, None, "STABLE")],
)
def test_a_worker_is_stable_at_its_target(epoch: int | None, target: int | None, state: str | None) -> None:
    group = ConnectGroup(group_epoch=2, assignment_epoch=target, members={"w": ConnectMember("w", member_epoch=epoch)})
    (worker,) = describe_connect("g", group)["members"]
    assert worker["state"] == state


def test_a_session_outlasts_the_heartbeats_of_the_group_itself() -> None:
    settings = {"group.streams.session.timeout.ms": "50000", "group.streams.heartbeat.interval.ms": "50000"}
    of = dict.fromkeys(("group.streams.max.heartbeat.interval.ms",), "90000")
    beats, session = describe_settings(GroupType.STREAMS, settings, of.get)
    assert beats["problem"] is None
    assert session["problem"] == (
        "not above group.streams.heartbeat.interval.ms=50000: sessions end between two heartbeats"
    )


def test_the_default_bounds_are_those_of_the_model() -> None:
    config = BrokerConfig()
    assert {name: getattr(config, name.replace(".", "_")) for name in DEFAULTS} == DEFAULTS
    named = {bound for bounds in BOUNDS.values() for bound in bounds if isinstance(bound, str)}
    assert named == DEFAULTS.keys()
