"""Transcripts of Connect groups on KIP-848; for the form of a transcript see ``transcript``. Commands:

    work UNITS                             the connectors and tasks that are configured
    settings NAME=VALUE...                 the configuration of the group
    loads EPOCH NAME=UNITS...              the coordinator loads a group that has settled at this epoch
    worker NAME join|beat|leave|away versions=LOW-HIGH assignor=NAME reason=N epoch=N runs=UNITS instance=ID
    compute NAME WORKER=UNITS... error=N   the worker prepares an assignment and installs this one
    prepare NAME; install NAME epoch=N...  the same in two steps
    wait SECONDS; live SECONDS NAME...     time passes; these workers heartbeat every 30 s, shown where it matters
    describe; timers; delete; takeover
    old NAME ...                           workers of the classic protocol: see ``transcript_old_workers``

Units are written as the document writes them: AC0 is connector A, AT1 its first task. Workers run what they were last
given, unless ``runs`` says otherwise, and report it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator, describe_api
from coordinator_core.coordinator.connect import records
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields, from_fields
from coordinator_core.coordinator.protocol import ErrorCode, Request, RequestOutcome
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family, Fields, LogPosition
from tests.core.coordinator.transcript_old_workers import Coordinators, OldWorker, Step, answer_of

GROUP = "connect"
START_MS = 1_700_000_000_000
TOPICS = TopicImage.of(())
ASSIGNOR = "sessioned"


@dataclass(slots=True)
class _Worker:
    epoch: int = 0
    runs: list[ConnectorOrTask] = field(default_factory=list)
    versions: tuple[int, int] = (0, 2)
    assignor: str = ASSIGNOR
    prepared: int = 0


@dataclass(slots=True)
class ConnectPlay:
    """A coordinator of Connect groups and its workers; ``command`` gives what comes of one line.

    ``log`` has all that was written to ``__worker_offsets``, ``take_overs`` the offsets from which another coordinator
    wrote. ``brokers`` has the coordinator of classic groups as well, and ``old_workers`` its workers.
    """

    memory: ConnectCoordinatorState = field(default_factory=ConnectCoordinatorState)
    now: int = START_MS
    workers: dict[str, _Worker] = field(default_factory=dict)
    log: list[CoordinatorRecord] = field(default_factory=list)
    take_overs: list[int] = field(default_factory=list)
    brokers: Coordinators = field(init=False)
    old_workers: dict[str, OldWorker] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.brokers = Coordinators(self.memory)

    def command(self, line: str) -> Iterator[str]:
        word, *rest = line.split()
        for shown in getattr(self, f"_{word}")(rest):
            yield self._named(shown)

    def leader_epoch(self, offset: int) -> int:
        """Return the leader epoch of the coordinator that wrote the record at an offset."""
        return bisect_right(self.take_overs, offset)

    def _work(self, words: list[str]) -> Iterator[str]:
        outcome = coordinator.set_connect_work(self.memory, TOPICS, self.now, GROUP, _units(",".join(words)))
        yield from self._shown(outcome)

    def _settings(self, words: list[str]) -> Iterator[str]:
        settings = dict(word.split("=", 1) for word in words)
        yield from self._shown(coordinator.configure_connect(self.memory, TOPICS, self.now, GROUP, settings))

    def _loads(self, words: list[str]) -> Iterator[str]:
        epoch, given = int(words[0]), {name: _units(text) for name, text in _pairs(words[1:]).items()}
        targets = [records.target_of_worker(name, units) for name, units in given.items()]
        written = [records.work(GROUP, 1, [unit for units in given.values() for unit in units])]
        written += [records.worker(GROUP, name, _metadata(_Worker(), name)) for name in given]
        written += [records.group_epoch(GROUP, epoch), records.target(GROUP, epoch, targets)]
        written += [records.current(GROUP, name, epoch, units) for name, units in given.items()]
        for offset, record in enumerate(written):
            self.log.append(CoordinatorRecord(LogPosition(0, offset, self.now), *record, 0))
            self.memory.follow(self.log[-1])
        self.memory.end_offset = len(written)
        self.workers = {name: _Worker(epoch, units) for name, units in given.items()}
        yield from self._takeover([])

    def _takeover(self, _: list[str]) -> Iterator[str]:
        memory = ConnectCoordinatorState(end_offset=self.memory.end_offset, log=self.memory.log)
        self.memory = self.brokers.connect = memory
        self.take_overs.append(len(self.log))
        yield from self._shown(coordinator.take_over(memory, TOPICS, self.now))

    def _worker(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        given, worker = _pairs(rest), self.workers.setdefault(name, _Worker())
        if "versions" in given:
            low, _, high = given["versions"].partition("-")
            worker.versions = int(low), int(high)
        worker.assignor = given.get("assignor", worker.assignor)
        if action == "join":
            worker.epoch, worker.runs = 0, []
        epoch = int(given.get("epoch", {"leave": -1, "away": -2}.get(action, worker.epoch)))
        data: Fields = {
            "groupId": GROUP,
            "memberId": name,
            "memberEpoch": epoch,
            "connectorsAndTasks": as_fields(_units(given["runs"]) if "runs" in given else worker.runs),
            "instanceId": given.get("instance"),
        }
        if epoch == 0 or "reason" in given:
            data["rebalanceTimeoutMs"] = 60_000
            data["clientAssignors"] = _assignors(worker, int(given.get("reason", 0)))
        steps = self._send("Heartbeat", name, data)
        response = answer_of(steps).response
        if response is not None and not _lost(response):
            worker.epoch = response["memberEpoch"]
            if response["assignment"] is not None:
                worker.runs = from_fields(response["assignment"]["connectorsAndTasks"])
        yield from self._all_shown(steps, name)

    def _prepare(self, words: list[str]) -> Iterator[str]:
        name = words[0]
        data = {"groupId": GROUP, "memberId": name, "memberEpoch": self.workers[name].epoch}
        steps = self._send("PrepareAssignment", name, data)
        response = answer_of(steps).response
        if response is not None:
            self.workers[name].prepared = response["groupEpoch"]
        yield from self._all_shown(steps, name)

    def _install(self, words: list[str]) -> Iterator[str]:
        name, *rest = words
        given = _pairs(rest)
        data = {
            "groupId": GROUP,
            "memberId": name,
            "memberEpoch": self.workers[name].epoch,
            "groupEpoch": int(given.pop("epoch", self.workers[name].prepared)),
            "error": int(given.pop("error", 0)),
            "members": [
                {"memberId": self._id_of(each), "connectorsAndTasks": as_fields(_units(text))}
                for each, text in given.items()
            ],
        }
        yield from self._all_shown(self._send("InstallAssignment", name, data), name)

    def _old(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        worker = self.old_workers.setdefault(name, OldWorker(name))
        given = {each: _units(units) for each, units in _pairs(rest).items()}
        request = worker.request(GROUP, action, worker.decided(given, self.old_workers) if given else [])
        steps = list(self.brokers.handle(request, self.now))
        for step in steps:
            for client, response in self.brokers.answers(step.outcome, request if step.is_answer else None):
                said = self.old_workers[client].answered(request.api if client == name else "JoinGroup", response)
                yield f"{client} <- {said}"
            yield from self._records(step)

    def _compute(self, words: list[str]) -> Iterator[str]:
        yield from self._prepare(words[:1])
        yield from self._install(words)

    def _wait(self, words: list[str]) -> Iterator[str]:
        until = self.now + int(float(words[0].rstrip("s")) * 1000)
        while due := [each for each in self.brokers.timers() if each[1].deadline_ms <= until]:
            family, timer = min(due, key=lambda each: (each[1].deadline_ms, each[1].key))
            self.now = timer.deadline_ms
            yield f"{self._time(self.now)} {timer.key}"
            for step in self.brokers.expire(GROUP, family, timer, self.now):
                for client, response in self.brokers.answers(step.outcome):
                    yield f"  {client} <- {self.old_workers[client].answered('JoinGroup', response)}"
                yield from (f"  {line}" for line in self._records(step))
        self.now = until

    def _live(self, words: list[str]) -> Iterator[str]:
        left, names = float(words[0]), words[1:]
        while left > 0:
            yield from self._wait([str(min(left, 30.0))])
            left -= 30.0
            for name in names:
                lines = list(self._worker([name, "beat"]))
                if len(lines) > 1 or lines[0] != f"{name} <- epoch {self.workers[name].epoch}":
                    yield from lines

    def _timers(self, _: list[str]) -> Iterator[str]:
        for timer in sorted((each for _, each in self.brokers.timers()), key=lambda each: (each.deadline_ms, each.key)):
            yield f"{self._time(timer.deadline_ms)} {timer.key}"

    def _delete(self, _: list[str]) -> Iterator[str]:
        yield from self._shown(coordinator.delete_group(self.memory, TOPICS, self.now, GROUP))

    def _describe(self, _: list[str]) -> Iterator[str]:
        group = describe_api.connect_group_describe(self.memory, GROUP, TOPICS)
        if group["errorCode"]:
            yield f"{ErrorCode(group['errorCode']).name}: {group['errorMessage']}"
            return
        yield f"{group['groupState']}: group epoch {group['groupEpoch']}, target of epoch {group['assignmentEpoch']}"
        if group["unassigned"]:
            yield f"unassigned: {_text(group['unassigned'])}"
        for member in group["members"]:
            wanted = _text(member["targetAssignment"])
            yield f"{member['memberId']}: epoch {member['memberEpoch']}, runs {_text(member['assignment'])} of {wanted}"

    def _send(self, api: str, client: str, data: Fields) -> list[Step]:
        return list(self.brokers.handle(Request(f"ConnectGroup{api}", 0, client, data), self.now))

    def _all_shown(self, steps: list[Step], name: str) -> Iterator[str]:
        for step in steps:
            yield from self._shown(step.outcome, name) if step.is_answer else self._records(step)

    def _records(self, step: Step) -> Iterator[str]:
        if step.family is Family.GROUP:
            yield from (f"  classic: {line}" for line in self.brokers.shown(step.outcome))
        else:
            yield from self._shown(replace(step.outcome, response=None, error=None))

    def _id_of(self, name: str) -> str:
        old = self.old_workers.get(name)
        return name if old is None else old.member_id

    def _named(self, text: str) -> str:
        """Return a line with names in the place of the ids of old workers, and timers without the group."""
        for name, worker in self.old_workers.items():
            text = text.replace(worker.member_id or name, name)
        return text.replace(f"-{GROUP}", "")

    def _shown(self, outcome: RequestOutcome, name: str = "") -> Iterator[str]:
        first = len(self.log)
        self.log += [record._replace(batch=first) for record in outcome.records]
        if outcome.error is not None:
            yield f"{name} <- {outcome.error.code.name}: {outcome.error.message}"
        elif outcome.response is not None:
            yield f"{name} <- {self._response(outcome.response)}"
        yield from (f"  {_record(record)}" for record in outcome.records)

    def _response(self, response: Fields) -> str:
        if _lost(response):
            return f"{ErrorCode(response['errorCode']).name}: {response['errorMessage']}"
        if "members" in response:
            members = (f"{each['memberId']} runs {_text(each['connectorsAndTasks'])}" for each in response["members"])
            return f"prepare epoch {response['groupEpoch']} by {response['assignorName']}: {'; '.join(members)}"
        if "memberEpoch" not in response:
            return "installed"
        if response["memberEpoch"] < 0:
            return "left" if response["memberEpoch"] == -1 else "left for a while"
        text = f"epoch {response['memberEpoch']}"
        if response["assignment"] is not None:
            text += f", is to run {_text(response['assignment']['connectorsAndTasks'])}"
        return f"{text}, COMPUTE_ASSIGNMENT" if response["errorCode"] else text

    def _time(self, at: int) -> str:
        seconds = (at - START_MS) / 1000
        return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def played(path: Path) -> ConnectPlay:
    """Play the transcript in a file."""
    play = ConnectPlay()
    for block in path.read_text().split("\n\n"):
        for line in block.split("----")[0].splitlines():
            if not line.startswith("#"):
                list(play.command(line))
    return play


def _lost(response: Fields) -> bool:
    return response["errorCode"] not in (ErrorCode.NONE, ErrorCode.COMPUTE_ASSIGNMENT)


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return {name: text for name, _, text in (word.partition("=") for word in words)}


def _assignors(worker: _Worker, reason: int) -> list[Fields]:
    low, high = worker.versions
    return [{"name": worker.assignor, "minimumVersion": low, "maximumVersion": high, "reason": reason, "version": low}]


def _metadata(worker: _Worker, name: str) -> Fields:
    return {
        "groupEpoch": 1,
        "instanceId": None,
        "clientId": name,
        "clientHost": "/127.0.0.1",
        "subscribedTopicNames": [],
        "subscribedTopicRegex": None,
        "assignors": [each | {"metadata": b""} for each in _assignors(worker, 0)],
    }


def _units(text: str) -> list[ConnectorOrTask]:
    return [each[0] if each[1] == "C" else (each[0], int(each[2:])) for each in text.split(",") if each]


def _text(work: Iterable[Fields]) -> str:
    names = [f"{unit}C0" if isinstance(unit, str) else f"{unit[0]}T{unit[1]}" for unit in from_fields(work)]
    return " ".join(sorted(names)) or "nothing"


def _record(record: CoordinatorRecord) -> str:
    kind = ConnectRecordType(record.type)
    name, value = record.key.get("memberId", ""), record.value
    label = kind.name.lower().replace("_", " ")
    if value is None:
        return f"- {label} {name}".rstrip()
    if kind is ConnectRecordType.GROUP_METADATA:
        return f"+ group epoch {value['epoch']}"
    if kind is ConnectRecordType.CONNECTORS_TASKS_METADATA:
        return f"+ connectors and tasks: {_text(value['connectorsTasks'])}"
    if kind is ConnectRecordType.MEMBER_METADATA:
        offered = ", ".join(
            f"{each['name']} {each['minimumVersion']}-{each['maximumVersion']}" for each in value["assignors"]
        )
        return f"+ worker {name}: {offered}"
    if kind is ConnectRecordType.TARGET_ASSIGNMENT:
        error = next((f", error {each['error']}" for each in value["members"] if each["error"]), "")
        shares = (f"{each['memberId']} {_text(each['connectorsTasks'])}" for each in value["members"])
        return f"+ target epoch {value['assignmentEpoch']}{error}: {'; '.join(shares)}"
    if kind is ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT:
        return f"+ current {name}: epoch {value['memberEpoch']}, runs {_text(value['connectorsTasks'])}"
    return "+ configuration " + ", ".join(f"{each['name']}={each['value']}" for each in value["configurations"])
