"""A worker of Kafka Connect that uses the classic protocol: eager, or incremental and cooperative (KIP-415)."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.assignors.client.claimed_partitions import NO_GENERATION
from coordinator_core.assignors.connect.work import CONNECTOR, NO_ERROR, LeaderAssignment, worker, worker_assignment
from coordinator_core.assignors.inputs import ConnectGroupSpec, ConnectorTask
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.record_fields.embedded import (
    ConnectProtocolAssignment,
    ConnectProtocolAssignmentConnectorTasks,
    ConnectProtocolMetadata,
)
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.classic import ClassicClient
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription, encode_blob

VERSIONS = {"default": 0, "compatible": 1, "sessioned": 2}
"""Connect's protocols and the versions of their blobs; a worker that supports one supports the earlier ones too."""
EAGER = "default"
_NO_TOPICS = TopicImage.of(())


class ConnectWorker(ClassicClient):
    """Runs what it is assigned; after a change of the connectors all workers join again."""

    protocol_type = "connect"
    commits = False

    def forget(self) -> None:
        """Run nothing, as a new process does."""
        self._connectors: list[str] = []
        self._tasks: list[ConnectorTask] = []
        self._memory: object = None
        self._completed = NO_GENERATION
        self._last: LeaderAssignment | None = None

    def protocols(self) -> Mapping[str, bytes]:
        """Return the protocol that the worker is configured with, and the earlier ones."""
        wanted = VERSIONS[self.setup.assignor or EAGER]
        offset = self.setup.configs.offset
        return {
            name: encode_blob(ConnectProtocolMetadata, version, self._metadata(version, offset))
            for name, version in sorted(VERSIONS.items(), key=lambda entry: -entry[1])
            if version <= wanted
        }

    def _metadata(self, version: int, offset: int) -> ConnectProtocolMetadata:
        fields: ConnectProtocolMetadata = {"url": f"http://{self.client_id}:8083/", "configOffset": offset}
        if version:
            fields["allocation"] = None if self._last is None else self._allocation(version, self._last)
        return fields

    def _allocation(self, version: int, last: LeaderAssignment) -> bytes:
        """What it runs, in the form of an assignment."""
        fields: ConnectProtocolAssignment = {
            "error": last.error,
            "leader": last.leader,
            "leaderUrl": last.leader_url,
            "configOffset": last.config_offset,
            "assignment": _listed(self._connectors, self._tasks),
            "revoked": None,
            "delay": 0,
        }
        return encode_blob(ConnectProtocolAssignment, version, fields)

    def assign(self, protocol: str, members: list[Fields]) -> Mapping[str, bytes]:
        """Return the assignor's result for the newest configuration that any worker has read."""
        blobs = {member["memberId"]: decode_subscription("connect", protocol, member["metadata"]) for member in members}
        workers = {member: worker(blob) for member, blob in blobs.items() if isinstance(blob, Blob)}
        offset = max(known.config_offset for known in workers.values())
        connectors = self.setup.configs.versions.get(offset, {})
        self.shard.groups[self.group_id].configured(connectors)
        spec = ConnectGroupSpec(
            workers,
            self.member_id,
            connectors,
            offset,
            self.epoch,
            self._completed,
            self.shard.now,
            self.script.delay,
            self._memory,
        )
        result = assign(protocol, spec, _NO_TOPICS)
        self._memory = result.memory
        lose = (
            loser
            for loser, assignment in result.members.items()
            if assignment.revoked_connectors or assignment.revoked_tasks
        )
        delay_ms = max((assignment.delay_ms for assignment in result.members.values()), default=0)
        self.shard.groups[self.group_id].takes(self.epoch, lose, delay_ms)
        return {member: _written(assignment, VERSIONS[protocol]) for member, assignment in result.members.items()}

    def assigned(self, data: bytes) -> None:
        """Run the assigned work; join again after stopping something, so that others get it, or after an
        announced delay.
        """
        blob = decode_assignment("connect", self._protocol, data)
        if blob is None:
            return
        assignment = worker_assignment(blob.fields)
        self._completed, self._last = self.epoch, assignment
        if assignment.error != NO_ERROR:
            self._rejoin()
        elif self._protocol == EAGER:
            self._connectors, self._tasks = list(assignment.connectors), list(assignment.tasks)
        else:
            self._follow(assignment)

    def _follow(self, assignment: LeaderAssignment) -> None:
        gone = {*assignment.revoked_connectors, *assignment.revoked_tasks}
        self._connectors = [
            connector
            for connector in dict.fromkeys((*self._connectors, *assignment.connectors))
            if connector not in gone
        ]
        self._tasks = [task for task in dict.fromkeys((*self._tasks, *assignment.tasks)) if task not in gone]
        if gone:
            self._joining = True
            self.soon(self.chance.between(1, self.setup.revocation_ms), self.join)
        if assignment.delay_ms:
            generation = self.epoch
            self.soon(assignment.delay_ms, lambda: self._delay_over(generation))

    def _delay_over(self, generation: int) -> None:
        if self._completed == generation and not self._joining:
            self._rejoin()

    def configured(self) -> None:
        """Take in that the config topic changed: read it soon, and join again."""
        self.soon(self.chance.between(5, 300), self._read_configs)

    def _read_configs(self) -> None:
        if not self._joining:
            self._rejoin()

    def prepare(self) -> int:
        """Stop everything if the protocol is eager; return how long that takes, in ms."""
        if self._protocol == EAGER and (self._connectors or self._tasks):
            self._connectors, self._tasks = [], []
            return self.chance.between(1, self.setup.revocation_ms)
        return 1

    def lose(self) -> None:
        """Stop everything: the worker is no longer a member."""
        self._connectors, self._tasks, self._last = [], [], None


def _written(assignment: LeaderAssignment, version: int) -> bytes:
    fields: ConnectProtocolAssignment = {
        "error": assignment.error,
        "leader": assignment.leader,
        "leaderUrl": assignment.leader_url,
        "configOffset": assignment.config_offset,
        "assignment": _listed(assignment.connectors, assignment.tasks),
    }
    if version:
        fields["revoked"] = _listed(assignment.revoked_connectors, assignment.revoked_tasks)
        fields["delay"] = assignment.delay_ms
    return encode_blob(ConnectProtocolAssignment, version, fields)


def _listed(connectors: Sequence[str], tasks: Iterable[ConnectorTask]) -> list[ConnectProtocolAssignmentConnectorTasks]:
    """By connector: its tasks' numbers, and that of the connector itself."""
    listed: dict[str, list[int]] = {connector: [CONNECTOR] for connector in connectors}
    for connector, number in tasks:
        listed.setdefault(connector, []).append(number)
    return [{"connector": connector, "tasks": numbers} for connector, numbers in listed.items()]
