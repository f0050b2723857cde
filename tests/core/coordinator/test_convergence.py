"""Without faults every group is settled after a bounded number of heartbeats of each member."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.assignors.profiles import KIP_1071, profile
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.records import Fields
from tests.core.coordinator.classic_clients import ClassicConsumer, Partition
from tests.core.coordinator.clients import GROUP, Cluster, Consumer
from tests.core.coordinator.newer_clients import ROLES, StreamsThread, topology
from tests.core.coordinator.transcript_connect import ConnectPlay

TOPICS = {"a": 5, "b": 3}
ALL = {(topic, number) for topic, count in TOPICS.items() for number in range(count)}
ROUNDS = 12
"""Heartbeats of each member within which a group has to be settled."""


def live(cluster: Cluster, clients: list[ClassicConsumer | Consumer], rounds: int = ROUNDS) -> None:
    """So many steps of each client, a second apart."""
    answers: dict[int, Fields] = {}
    for _ in range(rounds):
        for client in clients:
            if isinstance(client, Consumer):
                client.beat()
            else:
                client.step(answers)
        for outcome in cluster.pass_time(1_000):
            answers.update({each.request.correlation: each.response for each in outcome.completed})


def held(clients: list[ClassicConsumer | Consumer]) -> list[Partition]:
    return [
        partition
        for client in clients
        for partition in (
            client.owned
            if isinstance(client, ClassicConsumer)
            else [(each["topicId"].rstrip("A"), number) for each in client.owned for number in each["partitions"]]
        )
    ]


@given(st.integers(1, 6), st.integers(0, 3))
def test_classic_groups(first: int, more: int) -> None:
    """Members join at once, then others do; the leader's cooperative assignments leave nobody waiting."""
    cluster = Cluster.of(TOPICS)
    clients: list[ClassicConsumer | Consumer] = [ClassicConsumer(cluster, f"c{n}", ["a", "b"]) for n in range(first)]
    live(cluster, clients)
    clients += [ClassicConsumer(cluster, f"d{n}", ["a", "b"]) for n in range(more)]
    live(cluster, clients)
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveClassicGroup)
    assert group.state is ClassicGroupState.STABLE
    assert sorted(held(clients)) == sorted(ALL)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([0, 1_000]))
def test_mixed_groups(classics: int, consumers: int, interval: int) -> None:
    """Consumers join a classic group; classic members and consumers share the partitions between them."""
    cluster = Cluster.of(TOPICS, **{"group.consumer.assignment.interval.ms": interval})
    clients: list[ClassicConsumer | Consumer] = [ClassicConsumer(cluster, f"c{n}", ["a", "b"]) for n in range(classics)]
    live(cluster, clients)
    clients += [Consumer(cluster, f"m{n}", ["a", "b"]) for n in range(consumers)]
    live(cluster, clients, 2 * ROUNDS)
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveConsumerGroup)
    assert all(member.state == 0 and member.member_epoch == group.group_epoch for member in group.log.members.values())
    assert sorted(held(clients)) == sorted(ALL)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1))
def test_streams_groups_with_warm_ups(first: int, more: int, standbys: int) -> None:
    """Threads with state join; they report at every heartbeat that what they run or warm up is caught up."""
    partitions = 4
    cluster = Cluster.of(
        {"in": partitions, "changelog": partitions}, **{"group.streams.num.standby.replicas": standbys}
    )
    cluster.memory.profile = profile(KIP_1071)
    threads: list[StreamsThread] = []
    for count in (first, more):
        at = len(threads)
        threads += [StreamsThread(cluster, f"t{at + n}", topology(0, "in", stateful=True)) for n in range(count)]
        for _ in range(3 * ROUNDS):
            for thread in threads:
                tasks = {number for role in ROLES for each in thread.tasks[role] for number in each["partitions"]}
                offsets = [{"subtopologyId": "0", "partition": number, "offset": 100} for number in sorted(tasks)]
                thread.beat(taskOffsets=offsets, taskEndOffsets=offsets)
            cluster.pass_time(1_000)
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveStreamsGroup)
    assert all(member.state == 1 and member.member_epoch == group.group_epoch for member in group.log.members.values())
    assert sorted(number for thread in threads for number in thread.active) == list(range(partitions))
    assert max(len(thread.active) for thread in threads) - min(len(thread.active) for thread in threads) <= 1
    assert not any(thread.tasks["warmupTasks"] for thread in threads)


@given(st.integers(1, 4), st.integers(0, 3))
def test_connect_groups(first: int, more: int) -> None:
    """Whoever is asked to compute spreads the work evenly; everybody runs their share in the end."""
    play, units = ConnectPlay(), [f"{name}{what}" for name in "ABCDE" for what in ("C0", "T1", "T2")]
    list(play.command("work " + " ".join(units)))
    names: list[str] = []
    for count in (first, more):
        at = len(names)
        for name in (f"W{at + n}" for n in range(count)):
            list(play.command(f"worker {name} join"))
            names.append(name)
        for _ in range(ROUNDS):
            for name in names:
                asked = any("COMPUTE_ASSIGNMENT" in line for line in play.command(f"worker {name} beat"))
                if asked:
                    shares = " ".join(f"{each}={','.join(units[at :: len(names)])}" for at, each in enumerate(names))
                    list(play.command(f"compute {name} {shares}"))
            list(play.command("wait 5"))
    stable, *workers = play.command("describe")
    assert stable.startswith("Stable")
    assert len(workers) == len(names)
    assert sum(len(worker.runs) for worker in play.workers.values()) == len(units)
