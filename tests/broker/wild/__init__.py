"""Random lives of groups on a real broker: what was done, what clients saw, what Admin said, and the log of it all.

``python -m tests.broker.wild --seed N --seconds S --release R FOLDER`` records one; ``python -m tests.broker.wild.check
FOLDER`` compares what the commands say of its log with the truth beside it. Both need a JDK and Maven.
"""

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.broker.kafka import Clients, Line, free_ports, start_broker
from tests.broker.wild.librdkafka import Foreigner
from tests.broker.wild.plans import CONFIGURED, REBORN, Plan, plans
from tests.broker.wild.second_broker import REPLICATED, start_second

LOGS = ("__consumer_offsets-*", "__cluster_metadata-*", "__share_group_state-*")
SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.share.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.consumer.max.session.timeout.ms": "60000",
    "broker.rack": "rack-a",
    "offsets.retention.check.interval.ms": "20000",
    "log.cleaner.backoff.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
VARIED = {
    "offsets.topic.compression.codec": ("0", "0", "1", "4"),
    "offsets.retention.minutes": ("1", "10080"),
    "group.initial.rebalance.delay.ms": ("0", "0", "1500"),
    "group.streams.initial.rebalance.delay.ms": ("0", "1500"),
    "group.consumer.max.size": ("2147483647", "4"),
    "group.max.size": ("2147483647", "4"),
    "group.consumer.migration.policy": ("bidirectional", "bidirectional", "upgrade"),
    "share.coordinator.snapshot.update.records.per.snapshot": ("500", "3"),
    "group.coordinator.append.linger.ms": ("5", "0", "50"),
}
"""Settings of brokers that real clusters change; a life takes one value of each."""
UNSTABLE = {"unstable.api.versions.enable": "true", "unstable.feature.versions.enable": "true"}
NEEDS_UNSTABLE = ("4.1.2",)
"""Releases whose streams groups come only with settings and features of early access."""
COMPACTED = {
    "segment.ms": "9000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "12000",
    "delete.retention.ms": "3000",
}
GROUPS = 7
"""So many of the planned groups live at a time."""
CLIENTS_OF = {"4.1.2": "4.3.1", "4.4.0": "4.3.1"}
"""The release of the clients of brokers whose own clients say less, or for which there is no Kafka Streams yet."""


class Wild:
    """One recorded life; ``truth`` is what happened, in order of time."""

    def __init__(self, home: Path, release: str, seed: int, *, is_compacted: bool, has_second: bool = False) -> None:
        self.home, self.release, self.is_compacted, self.has_second = home, release, is_compacted, has_second
        self.chance = random.Random(seed)
        *self.ports, self.second_port = free_ports(3)
        self.servers = f"127.0.0.1:{self.ports[0]}" + (f",127.0.0.1:{self.second_port}" if has_second else "")
        self.settings = {**SETTINGS, "log.cleaner.enable": str(is_compacted).lower()}
        self.settings |= {name: self.chance.choice(values) for name, values in VARIED.items()}
        if release in NEEDS_UNSTABLE:
            self.settings |= UNSTABLE
        if has_second:
            self.settings |= REPLICATED
        self.truth: list[Line] = []
        self.topics: dict[str, int] = {}
        self.plans: list[Plan] = self.chance.sample(plans(self.chance), GROUPS)
        self.count = self.processes = 0
        self.client_release = CLIENTS_OF.get(release, release)
        self.frozen_until = 0.0
        self.members: dict[str, tuple[Plan, Line, Clients]] = {}
        self.foreigners: dict[str, Foreigner] = {}
        self.transactions: list[str] = []
        self.is_over = threading.Event()

    def live(self, seconds: float) -> None:
        """Run the broker and act at random for this time; then everybody leaves."""
        self.broker = self._start()
        self.second = self._start_second() if self.has_second else None
        linking = threading.Thread(target=self._link_always, daemon=True)
        linking.start()
        self.steady, self.shaky = self._process(), self._process()
        try:
            self._prepare()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self._act()
                if self.chance.random() < 0.25:
                    self._checkpoint()
                time.sleep(self.chance.choice((0.05, 0.2, 0.6, 1.5)))
            self._thaw()
            for name in list(self.members):
                self._leave(name)
            while self.foreigners:
                self._go_home()
            time.sleep(8)
            self._checkpoint()
        finally:
            for each in (self.steady, self.shaky):
                os.kill(each.process.pid, signal.SIGCONT)
                each.kill()
            for each in (self.second, self.broker):
                if each is not None:
                    each.terminate()
                    each.wait(120)
            self.is_over.set()
            linking.join()
            self._keep()

    def _process(self) -> Clients:
        """A process of clients, which writes down in a file what they see."""
        self.processes += 1
        events = str(self.home / f"events-{self.processes}.jsonl")
        return Clients(self.servers, self.home, self.client_release, "WildClients", arguments=[events])

    def _start(self) -> Any:
        return start_broker(self.home, self.release, self._ports(), self.settings)

    def _ports(self) -> tuple[int, int]:
        return self.ports[0], self.ports[1]

    def _start_second(self) -> Any:
        return start_second(self.home, self.release, self._ports(), self.second_port, self.settings)

    def _prepare(self) -> None:
        if self.release in NEEDS_UNSTABLE:
            self.say("raises features", self.steady.do("features"))
        for topic, partitions in (
            ("a", 3),
            ("b", 6),
            ("c", 1),
            ("d", 5),
            ("ev-1", 2),
            ("ev-2", 4),
            ("in", 4),
            ("in2", 4),
        ):
            self._create(topic, partitions)
        self._create("out", 2)
        for topic in self.topics:
            self.do("produce", topic=topic, count=10)
        if self.is_compacted:
            self.do("transaction", name="first", group="first", topic="a", offset=1, commit=True)
            self.do("configure_topic", topic="__consumer_offsets", settings=COMPACTED)

    def say(self, what: str, fields: Mapping[str, Any]) -> None:
        """Keep what was done."""
        self.truth.append({"at_ms": round(time.time() * 1000), "did": what, **fields})

    def do(self, order: str, through: Clients | None = None, **fields: Any) -> Line | None:
        """The answer to an order, None if it failed; both are part of the truth."""
        began = round(time.time() * 1000)
        try:
            answer = (through or self.steady).do(order, **fields)
        except RuntimeError as error:
            self.say(order, {**fields, "began_ms": began, "refused": str(error)[-200:]})
            return None
        self.say(order, {**fields, "began_ms": began})
        return answer

    def _create(self, topic: str, partitions: int) -> None:
        if self.do("create", topic=topic, partitions=partitions) is not None:
            self.topics[topic] = partitions

    def _act(self) -> None:
        acts = {
            self._join: 30 if len(self.members) < 16 else 6,
            self._leave: 14,
            self._subscribe: 10,
            self._pause: 3,
            self._freeze: 3,
            self._kill: 2,
            self._change_topics: 9,
            self._produce: 8,
            self._administer: 16,
            self._bear_again: 2,
            self._go_home: 3,
            self._configure: 4,
            self._transact: 4,
            self._fail_over: 3 if self.has_second else 1,
        }
        self.chance.choices(list(acts), list(acts.values()))[0]()

    def _join(self) -> None:
        plan = self.chance.choice(self.plans)
        members = [*self.members, *self.foreigners]
        if sum(each.rsplit("-", 1)[0] == plan.group for each in members) >= plan.most:
            return
        self.count += 1
        name = f"{plan.group}-{self.count}"
        held = {order.get("settings", {}).get("group.instance.id") for _, order, _ in self.members.values()}
        order = plan.newcomer(self.chance, self.count, held)
        if order["do"] == "foreigner":
            self.say("foreigner", order | {"name": name, "group": plan.group})
            self.foreigners[name] = Foreigner(
                self.servers, order | {"name": name, "group": plan.group}, self.truth.append
            )
            self.foreigners[name].start()
            return
        if order["do"] == "wild_streams":
            order["state"] = str(self.home / "streams" / name)
        through = self.shaky if self._is_awake() and self.chance.random() < 0.35 else self.steady
        if self.do(through=through, order=order.pop("do"), name=name, group=plan.group, **order) is not None:
            self.members[name] = (plan, order, through)

    def _is_awake(self) -> bool:
        if self.frozen_until and time.monotonic() > self.frozen_until:
            self._thaw()
        return not self.frozen_until

    def _pick(self) -> str | None:
        awake = self._is_awake()
        names = [name for name, (_, _, through) in self.members.items() if awake or through is self.steady]
        return self.chance.choice(names) if names else None

    def _leave(self, name: str | None = None) -> None:
        name = name or self._pick()
        if name is None:
            return
        plan, _, through = self.members.pop(name)
        how = "abandon" if plan.kind != "streams" and self.chance.random() < 0.25 else "close"
        self.do(how, through, name=name, group=plan.group)

    def _go_home(self) -> None:
        if self.foreigners:
            name = self.chance.choice(sorted(self.foreigners))
            self.say("close", {"name": name})
            self.foreigners.pop(name).close()

    def _subscribe(self) -> None:
        name = self._pick()
        if name and self.members[name][0].kind != "streams":
            plan, _, through = self.members[name]
            self.do("subscribe", through, name=name, group=plan.group, **plan.subscription(self.chance))

    def _pause(self) -> None:
        name = self._pick()
        if name and self.members[name][0].kind != "streams":
            self.do("pause", self.members[name][2], name=name, ms=self.chance.choice((1000, 4000, 9000)))

    def _freeze(self) -> None:
        if self._is_awake():
            self.frozen_until = time.monotonic() + self.chance.choice((1.0, 4.0, 10.0))
            self.say("freezes", {"names": [n for n, each in self.members.items() if each[2] is self.shaky]})
            os.kill(self.shaky.process.pid, signal.SIGSTOP)

    def _kill(self) -> None:
        """Kill one of the two processes of clients: none of its members says a word to its group."""
        if not self._is_awake():
            return
        names = [name for name, each in self.members.items() if each[2] is self.shaky]
        self.say("kills", {"names": names})
        self.shaky.kill()
        self.say("killed", {"names": names})
        for name in names:
            del self.members[name]
        self.shaky = self._process()

    def _thaw(self) -> None:
        if self.frozen_until:
            time.sleep(max(0, self.frozen_until - time.monotonic()))
            os.kill(self.shaky.process.pid, signal.SIGCONT)
            self.frozen_until = 0.0
            self.say("thaws", {})

    def _change_topics(self) -> None:
        what = self.chance.choice(("grow", "grow", "create", "delete", "again"))
        topic = self.chance.choice([each for each in self.topics if each != "out"])
        if what == "grow" and self.topics[topic] < 12:
            self.topics[topic] += self.chance.randint(1, 3)
            self.do("grow", topic=topic, partitions=self.topics[topic])
        elif what == "create":
            self._create(f"ev-{self.count}-{len(self.topics)}", self.chance.randint(1, 5))
        elif what in ("delete", "again") and (topic not in ("in", "in2") or self.chance.random() < 0.3):
            self.do("delete", topic=topic)
            if what == "again" or not topic.startswith("ev-"):
                time.sleep(self.chance.choice((0.3, 2)))
                self._create(topic, self.chance.randint(1, 6))
            else:
                del self.topics[topic]

    def _produce(self) -> None:
        for topic in self.chance.sample(sorted(self.topics), min(4, len(self.topics))):
            self.do("produce", topic=topic, count=self.chance.randint(1, 15))

    def _administer(self) -> None:
        plan = self.chance.choice(self.plans)
        topic = self.chance.choice(sorted(self.topics))
        partition = self.chance.randrange(self.topics[topic])
        where: Line = {"group": plan.group, "topic": topic, "partition": partition}
        what = self.chance.choice(
            ("alter_offset", "delete_offset", "delete_group", "remove_static", "remove_all", "simple")
        )
        if what == "simple":
            what = self.chance.choice(("alter_offset", "alter_offset", "delete_offset", "delete_group"))
            plan = Plan(f"nobody{self.chance.randrange(3)}", "classic", 0)
            where["group"] = plan.group
        if what == "alter_offset":
            name = "alter_share_offset" if plan.kind == "share" else what
            self.do(name, **where, offset=self.chance.randrange(30))
        elif what == "delete_offset":
            name = "delete_share_offset" if plan.kind == "share" else what
            self.do(name, **where)
        elif what == "delete_group":
            self.do(what, group=plan.group, type=plan.kind)
        elif what == "remove_static":
            self.do(what, group=plan.group, instance=f"i{self.chance.randrange(3)}")
        elif self.chance.random() < 0.3:
            self.do(what, group=plan.group)

    def _bear_again(self) -> None:
        """Delete a group without members, and give its name to a group of another kind."""
        plan = next((each for each in self.plans if each.group == "reborn"), None)
        if plan is None:
            return
        for name in [name for name, (owner, _, _) in self.members.items() if owner is plan]:
            if self._is_awake() or self.members[name][2] is self.steady:
                self._leave(name)
        if self.do("delete_group", group=plan.group, type=plan.kind) is not None:
            plan.kind = self.chance.choice(REBORN)

    def _configure(self) -> None:
        plan = self.chance.choice(self.plans)
        if plan.kind in CONFIGURED:
            name, values = self.chance.choice(CONFIGURED[plan.kind])
            self.do("configure", group=plan.group, settings={name: self.chance.choice(values)})

    def _transact(self) -> None:
        if self.transactions and self.chance.random() < 0.7:
            name = self.transactions.pop(0)
            self.do("close", name=name)
            return
        self.count += 1
        name = f"transaction-{self.count}"
        groups = [each.group for each in self.plans if each.kind in ("classic", "consumer")]
        topic = self.chance.choice(sorted(self.topics))
        fields = {"topic": topic, "partition": self.chance.randrange(self.topics[topic])}
        group = self.chance.choice((*groups, "bare", "bare"))
        fields |= {"offset": self.chance.randrange(30), "timeout": self.chance.choice((3000, 60_000))}
        if self.do("open_transaction", name=name, group=group, commit=self.chance.random() < 0.6, **fields) is not None:
            self.transactions.append(name)

    def _fail_over(self) -> None:
        is_killed = self.chance.random() < 0.5
        if self.second is not None:
            self.say("stops the second broker", {"killed": is_killed})
            (self.second.kill if is_killed else self.second.terminate)()
            self.second.wait(120)
            time.sleep(self.chance.choice((0, 12)))
            self.second = self._start_second()
            self.say("starts the second broker", {})
            return
        self.say("stops the broker", {"killed": is_killed})
        (self.broker.kill if is_killed else self.broker.terminate)()
        self.broker.wait(120)
        self.broker = self._start()
        self.say("starts the broker", {})

    def _checkpoint(self) -> None:
        said = None
        with suppress(RuntimeError):
            said = self.steady.do("describe")
        if said is not None:
            self.truth.append({"did": "describe", **said})

    def _link_always(self) -> None:
        while not self.is_over.wait(0.3):
            self._link()
        self._link()

    def _link(self) -> None:
        """Keep every segment as it was first written: the cleaner writes new files, and the old ones stay linked."""
        for pattern in LOGS:
            for segment in (self.home / "data").glob(f"{pattern}/*.log"):
                link = self.home / "full" / segment.parent.name / segment.name
                if not link.exists():
                    link.parent.mkdir(parents=True, exist_ok=True)
                    with suppress(FileNotFoundError):
                        os.link(segment, link)

    def _keep(self) -> None:
        """Write down the truth, and copy the log as it is at last. Of a killed process the last line may be cut."""
        for written in self.home.glob("events-*.jsonl"):
            for line in written.read_text().splitlines():
                with suppress(json.JSONDecodeError):
                    self.truth.append(json.loads(line))
        with (self.home / "truth.jsonl").open("w") as out:
            out.writelines(json.dumps(each) + "\n" for each in sorted(self.truth, key=lambda each: each["at_ms"]))
        for pattern in LOGS:
            for folder in (self.home / "data").glob(pattern):
                shutil.copytree(folder, self.home / "logs" / folder.name, ignore=shutil.ignore_patterns("*.swap"))
