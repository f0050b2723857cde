"""A thread of Kafka Streams on the classic protocol, with the eager protocol of its assignor (KIP-1071, migration)."""

from collections.abc import Mapping

from coordinator_core.assignors.inputs import StreamsConfigs, StreamsGroupSpec, StreamsMemberSpec, Tasks
from coordinator_core.assignors.registry import assign
from coordinator_core.assignors.streams.classic_invariants import StreamsAssignorError
from coordinator_core.coordinator.member_timers import session_key
from coordinator_core.coordinator.request_fields import shape_of
from coordinator_core.coordinator.streams import classic_blobs
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.records import topology_value
from coordinator_core.groups.classic.protocols import STREAMS_PROTOCOL
from coordinator_core.groups.consumer_protocol import assigned_tasks
from coordinator_core.groups.streams.replay import topology_of
from coordinator_core.groups.streams.state import Topology, task_units
from coordinator_core.groups.streams.topology import ConfiguredTopology, configure
from coordinator_core.record_fields.coordinator_requests import StreamsGroupHeartbeatRequest
from coordinator_core.record_fields.embedded import ConsumerProtocolSubscription, StreamsSubscriptionInfo
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.classic import PROTOCOL_VERSION, ClassicClient
from coordinator_core.simulator.clients.streams import is_at_target
from coordinator_core.simulator.internal_topics import topology
from coordinator_core.wire.embedded import encode_blob, of_version
from coordinator_core.wire.primitives import uuid_text

INFO_VERSION = 11
"""The newest version of Streams' own subscription and assignment."""

_TOPOLOGY = shape_of(StreamsGroupHeartbeatRequest).inner("topology")


class SimulatedThread(ClassicClient):
    """Runs the tasks that the leader, or the coordinator of a streams group, assigns; gives all up before it joins."""

    def forget(self) -> None:
        """Run nothing, as a new process does."""
        self._tasks = Tasks()

    @property
    def _topology(self) -> Topology:
        given = topology(self.group_id, self.setup.topics, self.script.streams)
        return topology_of(topology_value(_TOPOLOGY.filled(given, "topology")))

    @property
    def _subscribed(self) -> list[str]:
        """Return what a thread subscribes to: all sources, with those that the application writes itself."""
        between = [
            topic.name
            for subtopology in self._topology.subtopologies
            for topic in subtopology.repartition_source_topics
        ]
        return [*self.setup.topics, *between]

    def protocols(self) -> Mapping[str, bytes]:
        """Return the protocol of Streams, with the process and the state that it has."""
        info: StreamsSubscriptionInfo = {
            "latestSupportedVersion": INFO_VERSION,
            "processId": uuid_text(self.chance.fork("process").uuid().bytes),
            "userEndPoint": b"",
            "taskOffsetSums": [],
            "uniqueField": 0,
            "errorCode": 0,
            "clientTags": [],
        }
        fields: ConsumerProtocolSubscription = {
            "topics": self._subscribed,
            "userData": encode_blob(
                StreamsSubscriptionInfo, INFO_VERSION, of_version(StreamsSubscriptionInfo, INFO_VERSION, info)
            ),
            "ownedPartitions": [],
            "generationId": self.epoch,
            "rackId": self.setup.rack,
        }
        return {STREAMS_PROTOCOL: encode_blob(ConsumerProtocolSubscription, PROTOCOL_VERSION, fields)}

    def assign(self, protocol: str, members: list[Fields]) -> Mapping[str, bytes]:
        """Return, as the leader, the tasks of every member for the topics of this moment."""
        image, configured = self.shard.topics, self._configured
        self.shard.groups[self.group_id].assigned(self._subscribed, image)
        threads = {
            member["memberId"]: StreamsMemberSpec(classic_blobs.thread_info(member["metadata"]).process_id)
            for member in members
        }
        spec = StreamsGroupSpec(threads, configured.tasks, StreamsConfigs(self.script.streams.standbys))
        decided = assign("sticky", spec, image).members
        error = 0 if configured.has_tasks else StreamsAssignorError.ASSIGNMENT_ERROR
        return {
            member["memberId"]: classic_blobs.assignment(
                decided.get(member["memberId"], Tasks()), configured, image, member["metadata"], self.shard.now, error
            )
            for member in members
        }

    @property
    def _configured(self) -> ConfiguredTopology:
        return configure(self._topology, self.shard.topics)

    def assigned(self, data: bytes) -> None:
        """Run the assigned tasks, and commit for the active ones."""
        self._tasks = assigned_tasks(data)
        sources = {name: subtopology.sources for name, subtopology in self._configured.subtopologies.items()}
        topics = self.shard.topics.by_name
        self.commit(
            [
                (name, None, number)
                for subtopology, number in sorted(task_units(self._tasks.active))
                for name in sorted(sources.get(subtopology, ()))
                if name in topics and number < topics[name].partitions
            ]
        )

    def prepare(self) -> int:
        """Give up all tasks; return how long that takes, in ms."""
        had = any(True for _ in task_units(self._tasks.active))
        self.lose()
        return self.chance.between(1, self.setup.revocation_ms) if had else 1

    def lose(self) -> None:
        """Drop all tasks."""
        self._tasks = Tasks()
        self.commit(())

    # --- in a group that became a streams group --------------------------------------------------------------------

    def session_key(self) -> str:
        """Return the key of the member's session timer, for the type that its group has now."""
        if isinstance(self.shard.memory.live.get(self.group_id), LiveStreamsGroup):
            return session_key(self.group_id, self.member_id)
        return super().session_key()

    def settled(self) -> bool:
        """Whether the group is stable, or, in a streams group, the member is at its target."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveStreamsGroup):
            return super().settled()
        return not self._joining and is_at_target(live, self.member_id, self.shard.now)
