"""Transcripts of a coordinator at work that an operator can read: what clients do, what is written and answered.

A transcript is a text of blocks; a block is one or more commands, a line ``----``, and what came of them, up to an
empty line. ``run`` gives the text again with what comes of the commands now. Commands:

    config NAME=VALUE...                    broker settings, before anything else
    profile NAME; group NAME=VALUE...       whose behaviour it is; settings of the group
    topics NAME=PARTITIONS[@ID]... -NAME... create, change and delete topics; with ID, the topic's id is another one
    consumer NAME join|beat|leave|pause OPTION=VALUE...
    classic NAME join|sync|beat|leave OPTION=VALUE...
    commit NAME TOPIC:PARTITION=OFFSET... [epoch=N]; fetch; clean
    wait SECONDS                            time passes, timers run
    resolve                                 background work is done
    describe, timers, delete                the group as it is; what is armed; delete it
    resigns; loading                        the coordinator is none any more; the next one begins to load the log
    takeover                                another coordinator loads the log

Single requests with any field: see ``transcript_questions``. Other groups: see ``transcript_streams``,
``transcript_threads``, ``transcript_share`` and ``transcript_connect``.

Clients are well-behaved unless an option says otherwise: they own what they were last given and use their last epoch.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from unittest import mock
from uuid import UUID

from coordinator_core.assignors.inputs import AssignedGroupType
from coordinator_core.assignors.profiles import profile
from coordinator_core.assignors.registry import ASSIGNORS
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.coordinator import coordinator, describe_api
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.memory import CoordinatorPhase, CoordinatorState
from coordinator_core.coordinator.protocol import Completed, Request, RequestOutcome
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.groups import consumer_protocol
from coordinator_core.records import CoordinatorRecord, Fields, RecordType
from coordinator_core.wire.embedded import encode_blob
from tests.core.coordinator import transcript_consumers as consumers
from tests.core.coordinator import transcript_questions as questions
from tests.core.coordinator import transcript_share as share
from tests.core.coordinator import transcript_streams as streams
from tests.core.coordinator import transcript_threads as threads
from tests.core.coordinator.transcript_connect import ConnectPlay

GROUP = "billing"
START_MS = 1_700_000_000_000
SEPARATOR = "----"
CONNECT = "# Connect"
"""How the transcript of a Connect group begins."""


def run(text: str) -> str:
    """The transcript with what comes of its commands now."""
    with mock.patch.dict(ASSIGNORS):
        return _run(text)


def _run(text: str) -> str:
    play = ConnectPlay() if text.startswith(CONNECT) else Play()
    blocks = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        if all(line.startswith("#") for line in lines):
            blocks.append(block)
            continue
        commands = lines[: lines.index(SEPARATOR)]
        shown = [line for command in commands for line in play.command(command)]
        blocks.append("\n".join([*commands, SEPARATOR, *shown]))
    return "\n\n".join(blocks) + "\n"


@dataclass(slots=True)
class _Client:
    name: str
    member_id: str = ""
    epoch: int = 0
    owned: list[Fields] = field(default_factory=list)
    protocol: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Play:
    """A coordinator with its topics, clock, clients and log; ``command`` gives what comes of one line."""

    memory: CoordinatorState = field(default_factory=coordinator.new_state)
    topics: TopicImage = field(default_factory=lambda: TopicImage.of([], version=0))
    now: int = START_MS
    clients: dict[str, _Client] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    topologies: dict[str, Fields] = field(default_factory=dict)
    log: list[CoordinatorRecord] = field(default_factory=list)

    def command(self, line: str) -> Iterator[str]:
        word, *rest = line.split()
        yield from getattr(self, f"_{word}")(rest)

    def _config(self, words: list[str]) -> Iterator[str]:
        self.memory = coordinator.new_state(BrokerConfig.of(dict(word.split("=", 1) for word in words)))
        return iter(())

    def _profile(self, words: list[str]) -> Iterator[str]:
        self.memory.profile = profile(words[0])
        return iter(())

    def _group(self, words: list[str]) -> Iterator[str]:
        self.memory.configure_group(GROUP, dict(word.split("=", 1) for word in words))
        return iter(())

    def _topology(self, words: list[str]) -> Iterator[str]:
        name, *rest = words
        self.topologies[name] = streams.topology(dict(word.split("=", 1) for word in rest))
        return iter(())

    def _streams(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        client = self._client(name, member_id=name)
        given = {key: value for key, _, value in (word.partition("=") for word in rest)}
        data = {"groupId": GROUP, **streams.heartbeat(client, action, given, self.topologies)}
        outcome = self._send("StreamsGroupHeartbeat", 0, data, client=client.options.get("instance", name))
        streams.answered(client, outcome)
        yield from self._shown(outcome, name)

    def _loads(self, words: list[str]) -> Iterator[str]:
        generation, *members = words
        given = dict(word.split("=", 1) for word in members)
        record = threads.classic_group(GROUP, int(generation), given, lambda name: self._client(name, member_id=name))
        self.memory.follow(record)
        self.memory.end_offset = 1
        self.log = [record]
        yield from self._shown(coordinator.take_over(self.memory, self.topics, self.now))

    def _assigns(self, words: list[str]) -> Iterator[str]:
        fixed = threads.fixed_assignor(dict(word.split("=", 1) for word in words))
        ASSIGNORS[AssignedGroupType.STREAMS, "highly_available"] = fixed
        return iter(())

    def _thread(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        given = dict(word.split("=", 1) for word in rest)
        client = self._client(name)
        outcome = self._send(*threads.data(client, action, GROUP, given), client=name)
        if outcome.response is not None and outcome.response["errorCode"] == 79:
            yield from self._shown(outcome, name)
            outcome = self._send(*threads.data(client, action, GROUP, given), client=name)
        if action == "sync" and outcome.response is not None and not outcome.response["errorCode"]:
            yield f"{name} <- {threads.synced(client, outcome.response['assignment'])}"
            name = ""
        yield from self._shown(outcome, name)

    def _loading(self, _: list[str]) -> Iterator[str]:
        self.memory.phase = CoordinatorPhase.LOADING
        yield from ()

    def _resigns(self, _: list[str]) -> Iterator[str]:
        self.memory.phase = CoordinatorPhase.RESIGNED
        yield from ()

    def _takeover(self, _: list[str]) -> Iterator[str]:
        before = self.memory
        self.memory = coordinator.new_state(before.config, profile=before.profile, group_configs=before.group_configs)
        for record in self.log:
            self.memory.follow(record)
        self.memory.end_offset = before.end_offset
        self.memory.publish(self.topics.version, created=list(self.topics.by_name))
        yield from self._shown(coordinator.take_over(self.memory, self.topics, self.now))

    def _share(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        client = self._client(name, member_id=name)
        given = {key: value for key, _, value in (word.partition("=") for word in rest)}
        data = {"groupId": GROUP, **share.heartbeat(client, action, given)}
        outcome = self._send("ShareGroupHeartbeat", 1, data, client=name)
        if outcome.response is not None:
            self._consumer_answered(client, outcome.response)
        yield from self._shown(outcome, name)
        if (asked := share.asked(outcome)) and "lost" not in given:
            done = coordinator.share_state_initialized(self.memory, self.topics, self.now, GROUP, asked)
            yield from self._shown(done)

    def _topics(self, words: list[str]) -> Iterator[str]:
        before = self.topics.by_name
        named = dict(before)
        changes: dict[str, list[str]] = {"created": [], "changed": [], "deleted": []}
        for word in words:
            name, _, count = word.partition("=")
            if word.startswith("-"):
                del named[word[1:]]
                changes["deleted"].append(word[1:])
                continue
            changes["changed" if name in named else "created"].append(name)
            partitions, _, again = count.partition("@")
            named[name] = Topic(name, _topic_id(name + again), int(partitions))
        version = self.topics.version + 1
        self.topics = TopicImage.of(named.values(), version=version)
        self.memory.publish(version, **changes)
        deleted = {name: before[name].id for name in changes["deleted"]}
        if deleted:
            yield from self._shown(coordinator.delete_topics(self.memory, self.topics, self.now, deleted))
            gone = list(deleted.values())
            yield from self._shown(coordinator.clean_up_share_state(self.memory, self.topics, self.now, gone))

    def _wait(self, words: list[str]) -> Iterator[str]:
        until = self.now + int(float(words[0].rstrip("s")) * 1000)
        while True:
            due = [timer for timer in self.memory.timers.values() if timer.deadline_ms <= until]
            if not due:
                break
            timer = min(due, key=lambda each: (each.deadline_ms, each.key))
            self.now = timer.deadline_ms
            outcome = coordinator.expire(self.memory, timer, self.topics, self.now)
            yield f"{self._time(self.now)} {self._named(timer.key)}"
            yield from (f"  {line}" for line in self._shown(outcome))
        self.now = until

    def _resolve(self, _: list[str]) -> Iterator[str]:
        for task in list(self.memory.tasks.values()):
            yield from self._shown(coordinator.complete(self.memory, task, self.topics, self.now))

    def _timers(self, _: list[str]) -> Iterator[str]:
        for timer in sorted(self.memory.timers.values(), key=lambda each: (each.deadline_ms, each.key)):
            yield f"{self._time(timer.deadline_ms)} {self._named(timer.key)}"

    def _delete(self, _: list[str]) -> Iterator[str]:
        yield from self._shown(coordinator.delete_group(self.memory, self.topics, self.now, GROUP))

    def _describe(self, _: list[str]) -> Iterator[str]:
        for group in describe_api.list_groups(self.memory):
            yield f"{group['groupType']} group, {group['groupState']}"
        group = describe_api.DESCRIBE["ConsumerGroupDescribe"](self.memory, GROUP, self.topics)
        if not group["errorCode"]:
            yield f"epoch {group['groupEpoch']}, target of epoch {group['assignmentEpoch']} by {group['assignorName']}"
            for member in sorted(group["members"], key=lambda each: self._named(each["memberId"])):
                has, wants = (
                    consumers.partitions(
                        (each["topicName"], each["partitions"]) for each in member[which]["topicPartitions"]
                    )
                    for which in ("assignment", "targetAssignment")
                )
                kind = "consumer" if member["memberType"] else "classic member"
                name = self._named(member["memberId"])
                yield f"{kind} {name} at epoch {member['memberEpoch']}: has {has}, is to have {wants}"
        named = describe_api.DESCRIBE["ShareGroupDescribe"](self.memory, GROUP, self.topics)
        yield from share.described(named, consumers.partitions)
        running = describe_api.DESCRIBE["StreamsGroupDescribe"](self.memory, GROUP, self.topics)
        yield from map(self._named, streams.described(running))
        group = describe_api.DESCRIBE["DescribeGroups"](self.memory, GROUP, self.topics)
        if not group["errorCode"]:
            for member in sorted(group["members"], key=lambda each: self._named(each["memberId"])):
                yield f"member {self._named(member['memberId'])}: {consumers.assigned(member['memberAssignment'])}"

    def _consumer(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        given = dict(word.split("=", 1) for word in rest)
        client = self._client(name, member_id=name)
        if action == "join":
            client.epoch, client.owned, client.options = 0, [], client.options | given
        options = client.options if action == "join" else {}
        epoch = {"leave": -1, "pause": -2}.get(action, client.epoch)
        owned = client.owned if "owns" not in given else self._owned(given["owns"])
        data = {
            "groupId": GROUP,
            "memberId": given.get("id", client.member_id),
            "memberEpoch": int(given.get("epoch", epoch)),
            "instanceId": client.options.get("instance"),
            "rackId": options.get("rack"),
            "rebalanceTimeoutMs": int(float(options.get("timeout", 60)) * 1000) if action == "join" else -1,
            "subscribedTopicNames": _topic_list(options | given),
            "subscribedTopicRegex": (options | given).get("regex"),
            "serverAssignor": options.get("assignor"),
            "topicPartitions": owned,
        }
        if data["subscribedTopicNames"] is data["subscribedTopicRegex"] is None and action == "join":
            data["subscribedTopicNames"] = []
        outcome = self._send("ConsumerGroupHeartbeat", 1, data, client=name)
        response = outcome.response
        if response is not None:
            self._consumer_answered(client, response)
        yield from self._shown(outcome, name)

    def _consumer_answered(self, client: _Client, response: Fields) -> None:
        client.epoch = response["memberEpoch"]
        if response["assignment"] is not None:
            client.owned = response["assignment"]["topicPartitions"]

    def _classic(self, words: list[str]) -> Iterator[str]:
        name, action, *rest = words
        client = self._client(name)
        given = dict(word.split("=", 1) for word in rest)
        send: Callable[[_Client, dict[str, str]], RequestOutcome] = getattr(self, f"_classic_{action}")
        outcome = send(client, given)
        if outcome.response is not None and outcome.response["errorCode"] == 79:
            yield from self._shown(outcome, name)
            if "once" in given:
                return
            outcome = send(client, {name: value for name, value in given.items() if name != "id"})
        yield from self._shown(outcome, name)

    def _classic_join(self, client: _Client, given: dict[str, str]) -> RequestOutcome:
        client.options |= given
        options = client.options
        subscription = {
            "topics": _topic_list(options) or [],
            "userData": None,
            "ownedPartitions": [
                {"topic": self.topics.by_id[each["topicId"]].name, "partitions": each["partitions"]}
                for each in client.owned
            ],
            "generationId": client.epoch,
            "rackId": options.get("rack"),
        }
        metadata = encode_blob(consumer_protocol.SUBSCRIPTION, 3, subscription)
        protocols = options.get("protocols", "range").split(",")
        data = {
            "groupId": GROUP,
            "sessionTimeoutMs": int(float(options.get("session", 45)) * 1000),
            "rebalanceTimeoutMs": int(float(options.get("timeout", 60)) * 1000),
            "memberId": given.get("id", client.member_id),
            "groupInstanceId": options.get("instance"),
            "protocolType": options.get("type", "consumer"),
            "protocols": [{"name": protocol, "metadata": metadata} for protocol in protocols],
            "reason": None,
        }
        return self._send("JoinGroup", int(given.get("version", 9)), data, client=client.name)

    def _classic_sync(self, client: _Client, given: dict[str, str]) -> RequestOutcome:
        assignments = [
            {"memberId": self.clients[name].member_id, "assignment": self._assignment(partitions)}
            for name, partitions in given.items()
            if name in self.clients
        ]
        data = {
            "groupId": GROUP,
            "generationId": int(given.get("generation", client.epoch)),
            "memberId": client.member_id,
            "groupInstanceId": client.options.get("instance"),
            "protocolType": "consumer",
            "protocolName": client.protocol,
            "assignments": assignments,
        }
        return self._send("SyncGroup", 5, data, client=client.name)

    def _classic_beat(self, client: _Client, given: dict[str, str]) -> RequestOutcome:
        data = {
            "groupId": GROUP,
            "generationId": int(given.get("generation", client.epoch)),
            "memberId": client.member_id,
            "groupInstanceId": client.options.get("instance"),
        }
        return self._send("Heartbeat", 4, data, client=client.name)

    def _classic_leave(self, client: _Client, given: dict[str, str]) -> RequestOutcome:
        instance = client.options.get("instance")
        member_id = "" if instance else client.member_id
        members = [{"memberId": member_id, "groupInstanceId": instance, "reason": None}]
        return self._send("LeaveGroup", 5, {"groupId": GROUP, "members": members}, client=client.name)

    def _commit(self, words: list[str]) -> Iterator[str]:
        name, *rest = words
        given = dict(word.split("=", 1) for word in rest)
        client = self._client(name)
        offsets = [(where.split(":"), int(offset)) for where, offset in given.items() if ":" in where]
        topics = [
            {"name": topic, "partitions": [{"partitionIndex": int(partition), "committedOffset": offset}]}
            for (topic, partition), offset in offsets
        ]
        for topic in topics:
            topic["topicId"] = self.topics.by_name[topic["name"]].id
        data = {
            "groupId": GROUP,
            "memberId": client.member_id,
            "generationIdOrMemberEpoch": int(given.get("epoch", client.epoch if client.member_id else -1)),
            "groupInstanceId": client.options.get("instance"),
            "topics": topics,
        }
        yield from self._shown(self._send("OffsetCommit", 9, data, client=name), name)

    def _ask(self, words: list[str]) -> Iterator[str]:
        name, api, version, *rest = words
        self._client(name)
        members = {each.name: each.member_id for each in self.clients.values()}
        data = questions.data(api, int(version), rest, GROUP, members, self._topic_id)
        outcome = self._send(api, int(version), data, client=name)
        if outcome.error is None and outcome.response is not None and "generationId" not in outcome.response:
            names = {topic.id: topic.name for topic in self.topics.by_name.values()}
            answer = questions.shown(outcome.response, lambda topic_id: names.get(topic_id, "?"))
            yield f"{name} <- {self._named(answer)}"
            name = ""
        yield from self._shown(outcome, name)

    def _topic_id(self, name: str) -> str:
        topic = self.topics.by_name.get(name)
        return _topic_id(name) if topic is None else topic.id

    def _transaction(self, words: list[str]) -> Iterator[str]:
        self.memory.log.end_transaction(int(words[0]), committed=words[1] == "commit")
        return iter(())

    def _fetch(self, _: list[str]) -> Iterator[str]:
        outcome = self._send("OffsetFetch", 9, {"groups": [{"groupId": GROUP, "topics": None}]}, client="admin")
        for topic in (outcome.response or {})["groups"][0]["topics"]:
            for each in topic["partitions"]:
                yield f"{topic['name']} {each['partitionIndex']}: {each['committedOffset']}"

    def _clean(self, _: list[str]) -> Iterator[str]:
        yield from self._shown(coordinator.clean_up(self.memory, self.topics, self.now))

    def _client(self, name: str, member_id: str = "") -> _Client:
        if name not in self.clients:
            self.clients[name] = _Client(name, member_id)
        return self.clients[name]

    def _send(self, api: str, version: int, data: Fields, *, client: str) -> RequestOutcome:
        self.requests += 1
        request = Request(api, version, client, data, correlation=self.requests)
        ids = iter([UUID(int=self.requests)])
        return coordinator.handle(self.memory, request, self.topics, self.now, ids)

    def _shown(self, outcome: RequestOutcome, name: str = "") -> Iterator[str]:
        self.log += outcome.records
        for answer in outcome.completed:
            self._answered(answer)
        if name and outcome.response is not None and "generationId" in outcome.response:
            self._joined(self.clients[name], outcome.response)
        if outcome.error is not None:
            yield f"{name} <- {outcome.error.code.name}: {self._named(outcome.error.message)}".strip()
        elif name and outcome.response is not None:
            yield f"{name} <- {self._response(name, outcome.response)}"
        elif name:
            yield f"{name} waits"
        for answer in sorted(outcome.completed, key=lambda each: each.request.client_id):
            yield f"{answer.request.client_id} <- {self._response(answer.request.client_id, answer.response)}"
        yield from (f"  {self._record(record)}" for record in outcome.records)

    def _answered(self, answer: Completed) -> None:
        if "generationId" in answer.response:
            self._joined(self.clients[answer.request.client_id], answer.response)

    def _joined(self, client: _Client, response: Fields) -> None:
        if response["errorCode"] in (0, 79):
            client.member_id = response["memberId"]
            self.names[client.member_id] = client.name
        if response["errorCode"] == 0:
            client.epoch, client.protocol = response["generationId"], response["protocolName"]

    def _response(self, name: str, response: Fields) -> str:
        code = response.get("errorCode", 0)
        if code:
            return coordinator.ErrorCode(code).name
        client = self.clients[name]
        if isinstance(self.memory.live.get(GROUP), LiveShareGroup):
            return share.shown_response(client, response, self._by_id)
        if "activeTasks" in response:
            return streams.shown_response(client, response)
        if "generationId" in response:
            what = f"joined generation {response['generationId']} by {response['protocolName']}"
            if response["members"]:
                members = sorted(self._named(each["memberId"]) for each in response["members"])
                what += f", leads {', '.join(members)}"
            return what
        if "heartbeatIntervalMs" in response:
            if response["memberEpoch"] < 0:
                return "left" if response["memberEpoch"] == -1 else "left for a while"
            owned = "no news" if response["assignment"] is None else f"has {self._by_id(client.owned)}"
            return f"epoch {response['memberEpoch']}, {owned}"
        if "assignment" in response:
            named, _ = (
                consumer_protocol.assigned_partitions(response["assignment"]) if response["assignment"] else ([], None)
            )
            client.owned = [
                {"topicId": topic, "partitions": numbers}
                for topic, numbers in consumer_protocol.by_topic_id(named, self.topics).items()
            ]
            return f"synced, has {consumers.partitions(named)}"
        if "members" in response:
            codes = [coordinator.ErrorCode(each["errorCode"]).name for each in response["members"]]
            return "left" if codes == ["NONE"] else ", ".join(codes)
        if "topics" in response:
            codes = [each["errorCode"] for topic in response["topics"] for each in topic["partitions"]]
            return ", ".join(coordinator.ErrorCode(code).name for code in codes if code) or "committed"
        return "ok"

    def _record(self, record: CoordinatorRecord) -> str:
        member, kind = self._named(record.key.get("memberId", "")), RecordType(record.type)
        where = f"{record.key['topic']} {record.key['partition']}" if "partition" in record.key else ""
        if record.value is None:
            rest = record.key.get("regularExpression", "") + where
            return f"- {KINDS[kind]} {member}{rest}".rstrip()
        if kind in share.KINDS:
            return f"+ {KINDS[kind]} {share.shown_record(kind, member, record.value, self._by_id)}"
        if kind in streams.KINDS:
            return f"+ {KINDS[kind]} {streams.shown_record(kind, member, record.value)}"
        shown = consumers.shown_record(kind, member, record.value, self._by_id, self._named)
        regex = f"{record.key['regularExpression']} = " if "regularExpression" in record.key else ""
        return f"+ {KINDS[kind]} {regex}{where}{shown}"

    def _named(self, text: str) -> str:
        for member_id, name in self.names.items():
            text = text.replace(member_id, name)
        return text.replace(f"-{GROUP}", "")

    def _by_id(self, partitions: Iterable[Fields]) -> str:
        names = {topic.id: topic.name for topic in self.topics.by_name.values()}
        return consumers.partitions((names.get(each["topicId"], "?"), each["partitions"]) for each in partitions)

    def _owned(self, text: str) -> list[Fields]:
        return [
            {"topicId": self.topics.by_name[topic].id, "partitions": numbers}
            for topic, numbers in consumers.parsed(text)
        ]

    def _assignment(self, text: str) -> bytes:
        partitions = [{"topic": topic, "partitions": numbers} for topic, numbers in consumers.parsed(text)]
        return encode_blob(consumer_protocol.ASSIGNMENT, 3, {"assignedPartitions": partitions, "userData": None})

    def _time(self, at: int) -> str:
        seconds = (at - START_MS) / 1000
        return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


KINDS = {**consumers.KINDS, **share.KINDS, **streams.KINDS}
"""Record type to what it is called."""


def _topic_id(name: str) -> str:
    return json.dumps(name)[1:-1].ljust(22, "A")[:22].replace(".", "_")


def _topic_list(options: dict[str, str]) -> list[str] | None:
    return [each for each in options["topics"].split(",") if each] if "topics" in options else None
