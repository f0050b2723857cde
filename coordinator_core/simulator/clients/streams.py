"""A member of a streams group (KIP-1071): a Kafka Streams process with one thread."""

from collections.abc import Iterator
from functools import partial

from coordinator_core.assignors.inputs import TaskId
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.heartbeat import Status
from coordinator_core.coordinator.streams.validation import TASK_FIELDS
from coordinator_core.groups import re2
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.streams.state import StreamsMemberState
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.epoch_client import ReconcilingClient
from coordinator_core.simulator.ground_truth import TrueCause
from coordinator_core.simulator.internal_topics import topology

Tasks = frozenset[tuple[str, str, int]]
"""Tasks as role, subtopology and partition."""


class StreamsThread(ReconcilingClient):
    """Reports its tasks whenever they changed, and closes tasks within a while when asked to."""

    heartbeat_api = "StreamsGroupHeartbeat"

    def reset(self) -> None:
        """Use the topology of the configured topics, as a new process does."""
        super().reset()
        setup = self.setup
        self._topology = topology(self.group_id, setup.topics, self.script.streams, setup.regex, setup.topology_epoch)
        self._acceptable_lag = 0
        self._report_every_ms = 0

    def abandon(self) -> None:
        """Return to epoch 0, without tasks."""
        super().abandon()
        self._owned: Tasks = frozenset()
        self._wanted: Tasks = frozenset()

    def join(self) -> None:
        """Send the first heartbeat, with the topology."""
        self._news = {
            "rebalanceTimeoutMs": self.script.rebalance_timeout,
            "topology": self._topology,
            "processId": f"{self.client_id}-process",
            "rackId": self.setup.rack,
            **{role: [] for role in TASK_FIELDS},
            **self._offsets(),
        }
        self.beat(tuple(self._new_topology()))

    def _new_topology(self) -> Iterator[TrueCause]:
        """The causes of an epoch that this topology is, as that of the group and as that of a static member."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveStreamsGroup) or live.log.topology is None:
            return
        if live.log.topology.epoch < self.setup.topology_epoch:
            yield TrueCause("topology_changed")
        former = live.static_member(self.setup.instance_id)
        if former is not None and (former.topology_epoch or 0) < self.setup.topology_epoch:
            yield TrueCause("topology_changed", self.member_id)

    def beat(self, why: tuple[TrueCause, ...] = ()) -> None:
        """Send a heartbeat with what changed since the last one; ``why`` has the causes of an epoch that it opens."""
        self.tell(self.epoch, self._news, why)

    def shut_down(self) -> None:
        """Leave for good after a fatal error, and ask for the shutdown of the whole application."""
        if self.running:
            self.tell(LEAVE_GROUP_MEMBER_EPOCH, {"shutdownApplication": True})
            self._stop()

    def _stop(self) -> None:
        self.setup.disk.open((), self.shard.now)
        super()._stop()

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch, and begin to reconcile new tasks."""
        if api != self.heartbeat_api or response["memberEpoch"] < 0:
            return
        self.epoch = response["memberEpoch"]
        self._acceptable_lag = response["acceptableRecoveryLag"]
        self._report_in(response["taskOffsetIntervalMs"])
        self._news = {}
        if any(status["statusCode"] == Status.SHUTDOWN_APPLICATION for status in response["status"] or ()):
            self.leave()
            return
        if response["activeTasks"] is not None:
            self._wanted = frozenset(
                (role, tasks["subtopologyId"], partition)
                for role in TASK_FIELDS
                for tasks in response[role]
                for partition in tasks["partitions"]
            )
        self.reconcile(asked_back=bool(self._owned - self._wanted), changed=self._owned != self._wanted)

    def take_over(self) -> None:
        """Run the assigned tasks, and commit for the active ones."""
        tasks = self._owned = self._wanted
        topics = self.shard.topics.by_name
        sources = {each["subtopologyId"]: self._sources(each) for each in self._topology["subtopologies"]}
        self.commit(
            [
                (name, topics[name].id, partition)
                for role, subtopology, partition in sorted(tasks)
                if role == "activeTasks"
                for name in sources.get(subtopology, ())
                if name in topics and partition < topics[name].partitions
            ]
        )
        for role in TASK_FIELDS:
            held: dict[str, list[int]] = {}
            for _, subtopology, partition in sorted(task for task in tasks if task[0] == role):
                held.setdefault(subtopology, []).append(partition)
            self._news[role] = [{"subtopologyId": name, "partitions": numbers} for name, numbers in held.items()]
        self._restore()
        self._news |= self._offsets()
        self.beat_in(self.chance.between(1, 20))

    def _sources(self, subtopology: Fields) -> list[str]:
        """The topics that a subtopology reads now."""
        internal = [topic["name"] for topic in subtopology.get("repartitionSourceTopics", ())]
        own = {*internal, *(topic["name"] for topic in subtopology.get("stateChangelogTopics", ()))}
        names = list(self.shard.topics.by_name)
        matched = [name for regex in subtopology.get("sourceTopicRegex", ()) for name in re2.matching(regex, names)]
        return [*subtopology.get("sourceTopics", ()), *(name for name in matched if name not in own), *internal]

    @property
    def _reports_offsets(self) -> bool:
        return self.script.streams.stateful and self.shard.memory.profile.is_kip_1071

    def _offsets(self) -> Fields:
        return self.setup.disk.report(self.shard.now) if self._reports_offsets else {}

    def _restore(self) -> None:
        """Restore the state of the tasks; report when one that warms up has caught up, and when active ones process.

        An active task that restores counts as behind. If the group did not learn that it is done, it would move the
        task back to its former process at the next occasion, and forth again, for ever.
        """
        if not self._reports_offsets:
            return
        stateful = {
            subtopology["subtopologyId"]
            for subtopology in self._topology["subtopologies"]
            if "stateChangelogTopics" in subtopology
        }
        held = {(subtopology, number): role for role, subtopology, number in self._owned if subtopology in stateful}
        now, disk = self.shard.now, self.setup.disk
        disk.open(held.keys(), now)
        for task, role in held.items():
            if role == "warmupTasks":
                self.soon(disk.caught_up_in(task, self._acceptable_lag, now), partial(self._caught_up, task))
        active = [task for task, role in held.items() if role == "activeTasks"]
        restored = max((disk.caught_up_in(task, 0, now) for task in active), default=0)
        if restored:
            self.soon(restored, self._send_offsets)

    def _report_in(self, interval_ms: int) -> None:
        """Report offsets once in this interval from now on, for as long as the process lives.

        Without these reports the group would know of each task only the offset from when it was taken over, and hold
        the state of every member to be far behind: no member would ever have to warm up.
        """
        begins = self._reports_offsets and self._report_every_ms == 0 < interval_ms
        self._report_every_ms = interval_ms
        if begins:
            self.soon(interval_ms, self._report)

    def _report(self) -> None:
        self.soon(self._report_every_ms, self._report)
        self._send_offsets()

    def _send_offsets(self) -> None:
        if self.epoch > 0 and not self._revoking:
            warming_up = [(subtopology, number) for role, subtopology, number in self._owned if role == "warmupTasks"]
            disk, lag, now = self.setup.disk, self._acceptable_lag, self.shard.now
            warm = any(disk.caught_up_in(task, lag, now) == 0 for task in warming_up)
            self._beat_with_offsets((TrueCause("warmup_caught_up", self.member_id),) if warm else ())

    def _caught_up(self, task: TaskId) -> None:
        if ("warmupTasks", *task) in self._owned and self.epoch > 0 and not self._revoking:
            self._beat_with_offsets((TrueCause("warmup_caught_up", self.member_id),))

    def _beat_with_offsets(self, why: tuple[TrueCause, ...]) -> None:
        self._news |= self._offsets()
        self.be_heard()
        self.beat(why)

    def settled(self) -> bool:
        """Whether it is at its target and the group is ready."""
        live = self.shard.memory.live.get(self.group_id)
        if not isinstance(live, LiveStreamsGroup) or self._news:
            return False
        return is_at_target(live, self.member_id, self.shard.now)


def is_at_target(group: LiveStreamsGroup, member_id: str, now: int) -> bool:
    """Whether neither the member nor the coordinator has anything left to change."""
    member = group.log.members.get(member_id)
    return (
        member is not None
        and member.state == StreamsMemberState.STABLE
        and member.member_epoch == group.group_epoch == group.assignment_epoch
        and not group.metadata_expired(now)
    )
