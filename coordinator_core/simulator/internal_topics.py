"""The topologies of simulated streams groups (KIP-1071), and the internal topics that brokers create for them."""

from collections.abc import Sequence

from coordinator_core.records import Fields
from coordinator_core.simulator.scenario import Streams


def topology(group_id: str, topics: Sequence[str], script: Streams, regex: str | None = None, epoch: int = 0) -> Fields:
    """Return the topology that the group's members send, in the form of StreamsGroupHeartbeat."""
    first: Fields = {"subtopologyId": "0", "sourceTopics": list(topics)}
    if regex is not None:
        first["sourceTopicRegex"] = [regex]
    if script.repartition is None:
        return {"epoch": epoch, "subtopologies": [_with_store(first, group_id, script)]}
    between = _repartition(group_id)
    second = {"subtopologyId": "1", "repartitionSourceTopics": [_topic(between, script.repartition)]}
    return {
        "epoch": epoch,
        "subtopologies": [{**first, "repartitionSinkTopics": [between]}, _with_store(second, group_id, script)],
    }


def internal_topics(group_id: str, script: Streams, largest: int) -> dict[str, int]:
    """Return the partition counts of the topology's internal topics; ``largest`` is that of its largest source."""
    tasks = script.repartition or largest
    names = [_repartition(group_id)] if script.repartition is not None else []
    return dict.fromkeys([*names, _changelog(group_id)] if script.stateful else names, tasks)


def _with_store(subtopology: Fields, group_id: str, script: Streams) -> Fields:
    if script.stateful:
        subtopology["stateChangelogTopics"] = [_topic(_changelog(group_id), 0)]
    return subtopology


def _repartition(group_id: str) -> str:
    return f"{group_id}-by-key-repartition"


def _changelog(group_id: str) -> str:
    return f"{group_id}-counts-changelog"


def _topic(name: str, partitions: int) -> Fields:
    return {"name": name, "partitions": partitions, "replicationFactor": 0, "topicConfigs": []}
