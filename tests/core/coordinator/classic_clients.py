"""Consumers that speak the classic protocol and behave, for scripts over the coordinator model."""

from dataclasses import dataclass, field
from typing import Any

from coordinator_core.coordinator.protocol import ErrorCode, RequestOutcome
from coordinator_core.groups import consumer_protocol
from coordinator_core.records import Fields
from coordinator_core.wire.embedded import encode_blob
from tests.core.coordinator.clients import GROUP, Cluster

Partition = tuple[str, int]


@dataclass(slots=True)
class ClassicConsumer:
    """A consumer with the cooperative protocol; ``step`` does what is to be done next, one request at a time."""

    cluster: Cluster
    name: str
    topics: list[str]
    member_id: str = ""
    generation: int = -1
    owned: set[Partition] = field(default_factory=set)
    state: str = "out"
    leads: list[str] = field(default_factory=list)
    waits_for: int | None = None

    def step(self, answers: dict[int, Fields]) -> None:
        """Take the answer to a parked request, else send the next one. ``answers`` collects what is answered later."""
        if self.waits_for is not None:
            answer = answers.pop(self.waits_for, None)
            if answer is None:
                return
            self.waits_for = None
            self._answered(answer)
            return
        outcome = {"out": self._join, "joined": self._sync, "stable": self._beat}[self.state]()
        answers.update({each.request.correlation: each.response for each in outcome.completed})
        if outcome.error is not None:
            self._refused(outcome.error.code)
        elif outcome.response is None:
            self.waits_for = self.cluster.requests
        else:
            self._answered(outcome.response)

    def _answered(self, response: Fields) -> None:
        code = ErrorCode(response["errorCode"])
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response["memberId"]
        elif code:
            self._refused(code)
        elif "generationId" in response:
            self.member_id, self.generation, self.state = response["memberId"], response["generationId"], "joined"
            self.leads = [each["memberId"] for each in response["members"]]
        elif "assignment" in response:
            self._assigned(response["assignment"])

    def _refused(self, code: ErrorCode) -> None:
        self.state = "out"
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.member_id, self.generation, self.owned = "", -1, set()

    def _assigned(self, blob: bytes) -> None:
        named, _ = consumer_protocol.assigned_partitions(blob) if blob else ([], None)
        given = {(topic, number) for topic, numbers in named for number in numbers}
        # Cooperative: who has to give something up joins again.
        self.state = "stable" if self.owned <= given else "out"
        self.owned = given

    def _join(self) -> RequestOutcome:
        by_topic: dict[str, list[int]] = {}
        for topic, number in sorted(self.owned):
            by_topic.setdefault(topic, []).append(number)
        subscription = {
            "topics": self.topics,
            "userData": None,
            "ownedPartitions": [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()],
            "generationId": self.generation,
            "rackId": None,
        }
        metadata = encode_blob(consumer_protocol.SUBSCRIPTION, 3, subscription)
        return self._send(
            "JoinGroup",
            9,
            {
                "protocolType": "consumer",
                "sessionTimeoutMs": 45_000,
                "rebalanceTimeoutMs": 60_000,
                "protocols": [{"name": "range", "metadata": metadata}],
            },
        )

    def _sync(self) -> RequestOutcome:
        """A leader gives each member every so-manieth partition of what it subscribes to itself."""
        wanted = [
            (topic, number)
            for topic in self.topics
            if topic in self.cluster.topics.by_name
            for number in range(self.cluster.topics.by_name[topic].partitions)
        ]
        assignments = []
        for at, member_id in enumerate(sorted(self.leads)):
            mine = wanted[at :: len(self.leads)]
            partitions = [{"topic": topic, "partitions": [number]} for topic, number in mine]
            blob = encode_blob(consumer_protocol.ASSIGNMENT, 3, {"assignedPartitions": partitions, "userData": None})
            assignments.append({"memberId": member_id, "assignment": blob})
        generation = {"generationId": self.generation, "protocolType": "consumer", "protocolName": "range"}
        return self._send("SyncGroup", 5, {**generation, "assignments": assignments})

    def _beat(self) -> RequestOutcome:
        return self._send("Heartbeat", 4, {"generationId": self.generation})

    def _send(self, api: str, version: int, data: dict[str, Any]) -> RequestOutcome:
        return self.cluster.send(api, version, {"groupId": GROUP, "memberId": self.member_id, **data}, self.name)
