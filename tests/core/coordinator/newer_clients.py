"""Members of share and streams groups that behave, for scripts over the coordinator model."""

from dataclasses import dataclass, field

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.protocol import RequestOutcome
from coordinator_core.coordinator.share.partitions import INITIALIZE_EFFECT
from coordinator_core.records import Fields
from tests.core.coordinator.clients import GROUP, Cluster


@dataclass(slots=True)
class ShareConsumer:
    """A share consumer of KIP-932; the share coordinator answers at once when it is asked for state."""

    cluster: Cluster
    member_id: str
    topics: list[str]
    epoch: int = 0
    assigned: list[Fields] = field(default_factory=list)

    def beat(self, **overrides: object) -> RequestOutcome:
        joins = self.epoch == 0
        data: Fields = {
            "groupId": GROUP,
            "memberId": self.member_id,
            "memberEpoch": self.epoch,
            "subscribedTopicNames": self.topics if joins else None,
        }
        outcome = self.cluster.send("ShareGroupHeartbeat", 1, data | overrides, self.member_id)
        if outcome.response is None:
            self.epoch, self.assigned = 0, []
            return outcome
        self.epoch = max(outcome.response["memberEpoch"], 0)
        if outcome.response["assignment"] is not None:
            self.assigned = outcome.response["assignment"]["topicPartitions"]
        initialize(self.cluster, outcome)
        return outcome


def initialize(cluster: Cluster, asked: RequestOutcome) -> None:
    """The share coordinator initialises what it is asked for."""
    partitions = {
        each["topic_id"]: [state["partition"] for state in each["partitions"]]
        for each in asked.effects.get(INITIALIZE_EFFECT, [])
    }
    outcome = coordinator.share_state_initialized(cluster.memory, cluster.topics, cluster.now, GROUP, partitions)
    cluster.append(outcome)


ROLES = ("activeTasks", "standbyTasks", "warmupTasks")


@dataclass(slots=True)
class StreamsThread:
    """A member of a streams group: runs what it was last given, comes back after an error with empty hands."""

    cluster: Cluster
    member_id: str
    topology: Fields
    process_id: str = ""
    endpoint: Fields | None = None
    epoch: int = 0
    tasks: dict[str, list[Fields]] = field(default_factory=lambda: {role: [] for role in ROLES})

    def beat(self, **overrides: object) -> RequestOutcome:
        joins = self.epoch == 0
        data: Fields = {
            "groupId": GROUP,
            "memberId": self.member_id,
            "memberEpoch": self.epoch,
            "rebalanceTimeoutMs": 30_000 if joins else -1,
            "topology": self.topology if joins else None,
            "processId": (self.process_id or self.member_id) if joins else None,
            "userEndpoint": self.endpoint if joins else None,
            **self.tasks,
        }
        outcome = self.cluster.send("StreamsGroupHeartbeat", 0, data | overrides, self.member_id)
        if outcome.response is None:
            self.epoch, self.tasks = 0, {role: [] for role in ROLES}
            return outcome
        self.epoch = max(outcome.response["memberEpoch"], 0)
        if outcome.response["activeTasks"] is not None:
            self.tasks = {role: outcome.response[role] for role in ROLES}
        return outcome

    def leave(self) -> RequestOutcome:
        outcome = self.beat(memberEpoch=-1, **dict.fromkeys(ROLES))
        self.epoch, self.tasks = 0, {role: [] for role in ROLES}
        return outcome

    @property
    def active(self) -> set[int]:
        """The partitions of its active tasks."""
        return {partition for each in self.tasks["activeTasks"] for partition in each["partitions"]}


def topology(epoch: int, *sources: str, stateful: bool = False) -> Fields:
    """A topology of one subtopology."""
    changelog = {"name": "changelog", "partitions": 0, "replicationFactor": 0, "topicConfigs": []}
    changelogs = [changelog] if stateful else []
    subtopology = {"subtopologyId": "0", "sourceTopics": list(sources), "stateChangelogTopics": changelogs}
    return {"epoch": epoch, "subtopologies": [subtopology]}
