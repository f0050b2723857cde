"""A real broker of 2.8 with ZooKeeper that is killed once: its logs without a metadata log, against Admin."""

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.broker.against_admin import Line
from tests.broker.kafka import Clients
from tests.broker.older import older_broker
from tests.broker.test_three_brokers import ASSIGNORS, join
from tests.commands import rows_of_command

pytestmark = pytest.mark.long

RELEASE = "2.8.2"


class Recorded(NamedTuple):
    home: Path
    said: Line

    @property
    def logs(self) -> list[str]:
        return ["--log", str(self.home / "data")]

    @property
    def lines(self) -> list[str]:
        return [*self.logs, "--broker-log", str(self.home / "server.log")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    home = tmp_path_factory.mktemp("zookeeper")
    with older_broker(home, RELEASE) as broker:
        clients = Clients(f"127.0.0.1:{broker.port}", home)
        clients.do("create", topic="orders", partitions=6, replicas=1)
        for name in ("m1", "m2"):
            join(clients, name, "")
            time.sleep(4)
        clients.do("produce", topic="orders", count=60)
        time.sleep(8)
        broker.kill()
        time.sleep(8)  # ZooKeeper has to notice: a broker whose former session lasts does not start
        broker.start()
        time.sleep(15)
        clients.do("grow", topic="orders", partitions=8)
        time.sleep(8)
        for group in ASSIGNORS:
            clients.do("close", name=f"m2-{group}")
        time.sleep(6)
        said = clients.do("describe")
        clients.kill()
    return Recorded(home, said)


def test_without_lines_of_the_broker_assignments_are_not_judged(recorded: Recorded) -> None:
    rows = rows_of_command("audit", *recorded.logs)
    assert [row for row in rows if row["table"] == "violations"] == []
    assert {row["verdict"] for row in rows if row["table"] == "target_audits"} == {"unknown"}
    assert all("(ZooKeeper)" in row["missing"] for row in rows if row["table"] == "target_audits")


def test_lines_of_the_broker_tell_the_topics_and_the_causes(recorded: Recorded) -> None:
    rows = rows_of_command("audit", *recorded.lines)
    assert [row for row in rows if row["table"] == "violations"] == []
    assert {row["verdict"] for row in rows if row["table"] == "target_audits"} == {"identical"}
    told = [cause for row in rows_of_command("rebalances", *recorded.lines) for cause in row["causes"]]
    # A leader may look at topics before a broker that starts knows them all, and joins again.
    causes = Counter(cause["kind"] for cause in told)
    assert causes["unknown"] == 0
    assert causes["leader_rejoined"] <= len(ASSIGNORS)
    assert causes["topic_grown"] >= len(ASSIGNORS)
    assert causes["member_left"] >= len(ASSIGNORS)


def test_groups_and_offsets_are_as_admin_said(recorded: Recorded) -> None:
    assert recorded.said["groups"].keys() == {*ASSIGNORS}
    for group, said in recorded.said["groups"].items():
        (ours,) = rows_of_command("describe", group, *recorded.logs)
        theirs, mine = said["describe_consumer"], ours["describe_consumer"]
        names = ("groupState", "partitionAssignor", "isSimpleConsumerGroup")
        assert {name: mine[name] for name in names} == {name: theirs[name] for name in names}
        assert held(mine) == held(theirs)
        assert len(held(mine)) == 1
        offsets = rows_of_command("offsets", group, *recorded.logs)
        committed = {f"{row['topic']}-{row['partition']}": row["offset"] for row in offsets}
        assert committed == {at: each["offset"] for at, each in said["offsets"].items()}


def held(described: Line) -> dict[str, list[str]]:
    """The partitions of each member."""
    return {member["consumerId"]: sorted(member["assignment"]["topicPartitions"]) for member in described["members"]}
