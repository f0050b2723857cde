"""Workers of the classic protocol in transcripts of Connect groups (migration). Commands:

    old NAME join|beat|leave               JoinGroup, Heartbeat, LeaveGroup
    old NAME sync WORKER=UNITS...          SyncGroup; the leader gives the work of every worker

A worker reports what it runs when it joins, and does what SyncGroup says. It joins again by itself where it stopped
something, as workers of Kafka do. What the two coordinators write is told apart by ``classic`` and by nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple
from uuid import UUID

from coordinator_core.assignors.connect.work import ConnectorOrTask, worker_assignment
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.classic_workers import PROTOCOL_VERSIONS, written_assignment
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request, RequestOutcome, Timer
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.classic.workers import classic_worker
from coordinator_core.groups.group import Group
from coordinator_core.records import CoordinatorRecord, Family, Fields
from coordinator_core.wire.embedded import decode_assignment, encode_blob

TOPICS = TopicImage.of(())
NO_GENERATION = -1


@dataclass(slots=True)
class OldWorker:
    """A worker that speaks the classic protocol; it leads if the coordinator says so."""

    name: str
    member_id: str = ""
    generation: int = NO_GENERATION
    runs: list[ConnectorOrTask] = field(default_factory=list)
    protocol: str = "sessioned"
    leads: bool = False

    def protocols(self) -> list[Fields]:
        """Return the protocols in the order of preference, with what the worker runs."""
        known = sorted(PROTOCOL_VERSIONS, key=PROTOCOL_VERSIONS.__getitem__, reverse=True)
        return [{"name": name, "metadata": self._metadata(name)} for name in known]

    def _metadata(self, name: str) -> bytes:
        fields: Fields = {"url": f"http://{self.name.lower()}:8083/", "configOffset": 1}
        if PROTOCOL_VERSIONS[name]:
            fields["allocation"] = written_assignment(b"", name, "", self.runs) if self.runs else None
        return encode_blob("ConnectProtocolMetadata", PROTOCOL_VERSIONS[name], fields)

    def request(self, group_id: str, action: str, assignments: list[Fields]) -> Request:
        """Return a request of the classic protocol."""
        member: Fields = {"groupId": group_id, "memberId": self.member_id, "groupInstanceId": None}
        if action == "join":
            member |= {"sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 60_000}
            return Request(
                "JoinGroup", 9, self.name, member | {"protocolType": "connect", "protocols": self.protocols()}
            )
        if action == "sync":
            member |= {"generationId": self.generation, "protocolType": "connect", "protocolName": self.protocol}
            return Request("SyncGroup", 5, self.name, member | {"assignments": assignments})
        if action == "leave":
            leaving = [{"memberId": self.member_id, "groupInstanceId": None}]
            return Request("LeaveGroup", 5, self.name, {"groupId": group_id, "members": leaving})
        return Request("Heartbeat", 4, self.name, member | {"generationId": self.generation})

    def decided(self, given: dict[str, list[ConnectorOrTask]], workers: "dict[str, OldWorker]") -> list[Fields]:
        """Return what this worker, as the leader, tells the others."""
        found = []
        for name, units in given.items():
            worker = workers[name]
            starts = [unit for unit in units if unit not in worker.runs]
            stops = [unit for unit in worker.runs if unit not in units]
            data = written_assignment(worker._metadata(self.protocol), self.protocol, self.member_id, starts, stops)
            found.append({"memberId": worker.member_id, "assignment": data})
        return found

    def answered(self, api: str, response: Fields | ApiError) -> str:
        """Take an answer in; return it in words."""
        error = response.code if isinstance(response, ApiError) else ErrorCode(response["errorCode"])
        if not isinstance(response, ApiError) and error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response["memberId"]
        if isinstance(response, ApiError) or error is not ErrorCode.NONE:
            return error.name
        if "generationId" in response:
            self.member_id, self.generation = response["memberId"], response["generationId"]
            self.protocol, self.leads = response["protocolName"], response["leader"] == self.member_id
            return f"generation {self.generation} by {self.protocol}{', leads' if self.leads else ''}"
        if "assignment" not in response:
            return "ok"
        return self._told(response["assignment"])

    def _told(self, data: bytes) -> str:
        blob = decode_assignment("connect", self.protocol, data)
        if blob is None:
            return "nothing to do"
        told = worker_assignment(blob.fields)
        starts, stops = (*told.connectors, *told.tasks), (*told.revoked_connectors, *told.revoked_tasks)
        kept = [] if not PROTOCOL_VERSIONS[self.protocol] else self.runs
        self.runs = [unit for unit in dict.fromkeys((*kept, *starts)) if unit not in stops]
        said = [f"{word} {text(some)}" for word, some in (("start", starts), ("stop", stops)) if some]
        return ", ".join(said) or "nothing to do"


class Step(NamedTuple):
    """An operation of one of the coordinators; ``is_answer``: it serves the request, and does not convert a group."""

    family: Family
    outcome: RequestOutcome
    is_answer: bool = False


@dataclass(slots=True)
class Coordinators:
    """The coordinators of both logs, as one broker has them. ``log`` has what was written to the classic log."""

    connect: ConnectCoordinatorState
    classic: CoordinatorState = field(default_factory=coordinator.new_state)
    log: list[CoordinatorRecord] = field(default_factory=list)
    _ids: Iterator[UUID] = field(default_factory=lambda: map(UUID, (f"{number:032x}" for number in count(1))))
    _correlations: Iterator[int] = field(default_factory=lambda: count(1))

    def handle(self, request: Request, now: int) -> Iterator[Step]:
        """Serve a request: first what it converts, then itself, then what follows from it."""
        group_id = request.data["groupId"]
        request = replace(request, correlation=next(self._correlations))
        converted = coordinator.upgrade_connect_group(self.connect, self.classic, request, now)
        if converted is not None:
            ended, begun = converted
            yield Step(Family.GROUP, ended, ended.error is not None)
            if ended.error is not None:
                return
            yield Step(Family.CONNECT, begun)
        own = request.api.startswith("ConnectGroup") or coordinator.serves_classic_workers(self.connect, group_id)
        memory = self.connect if own else self.classic
        yield Step(
            Family.CONNECT if own else Family.GROUP,
            coordinator.handle(memory, request, TOPICS, now, self._ids),
            is_answer=True,
        )
        yield from self._settle(group_id, now)

    def expire(self, group_id: str, family: Family, timer: Timer, now: int) -> Iterator[Step]:
        """Run a timer, and what follows from it."""
        memory = self.connect if family is Family.CONNECT else self.classic
        yield Step(family, coordinator.expire(memory, timer, TOPICS, now))
        yield from self._settle(group_id, now)

    def timers(self) -> list[tuple[Family, Timer]]:
        """Return what is armed, with the log of its coordinator."""
        return [
            *((Family.CONNECT, timer) for timer in self.connect.timers.values()),
            *((Family.GROUP, timer) for timer in self.classic.timers.values()),
        ]

    def answers(
        self, outcome: RequestOutcome, request: Request | None = None
    ) -> Iterator[tuple[str, Fields | ApiError]]:
        """Yield the answers of an operation by client; ``request`` is the one that it serves."""
        if request is not None and outcome.error is not None:
            yield request.client_id, outcome.error
        elif request is not None and outcome.response is not None:
            yield request.client_id, outcome.response
        for each in outcome.completed:
            yield each.request.client_id, each.response

    def shown(self, outcome: RequestOutcome) -> Iterator[str]:
        """Yield the records of the classic log in words."""
        first = len(self.log)
        self.log += [record._replace(batch=first) for record in outcome.records]
        for record in outcome.records:
            yield _record(record)

    def _settle(self, group_id: str, now: int) -> Iterator[Step]:
        """Convert the group back if its last worker of the new protocol is gone."""
        converted = coordinator.downgrade_connect_group(self.connect, self.classic, group_id, now)
        if converted is not None:
            yield Step(Family.CONNECT, converted[0])
            yield Step(Family.GROUP, converted[1])


def answer_of(steps: list[Step]) -> RequestOutcome:
    """Return the outcome that serves the request."""
    return next(step.outcome for step in steps if step.is_answer)


def _record(record: CoordinatorRecord) -> str:
    if record.value is None:
        return "- classic group"
    group = Group(record.group_id)
    group.apply(record)
    state = group.state
    assert isinstance(state, ClassicGroup)
    shares = []
    for member in state.members.values():
        runs = classic_worker(state, member).runs
        shares.append(f"{member.client_id} {text(() if runs is None else runs.units())}")
    leader = next((each.client_id for each in state.members.values() if each.member_id == state.leader), None)
    return (
        f"+ generation {state.generation}{f', leader {leader}' if leader else ''}: {'; '.join(shares) or 'no workers'}"
    )


def text(some: Iterable[ConnectorOrTask]) -> str:
    """Return units as the document writes them."""
    names = [f"{unit}C0" if isinstance(unit, str) else f"{unit[0]}T{unit[1]}" for unit in some]
    return " ".join(sorted(names)) or "nothing"
