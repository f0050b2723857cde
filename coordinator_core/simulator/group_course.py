"""The course of one group: its clients start, and then the events of its script follow."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from coordinator_core.groups.connect.state import MAX_DELAY_CONFIG
from coordinator_core.records import Family
from coordinator_core.simulator.clients.classic import ClassicConsumer
from coordinator_core.simulator.clients.classic_streams import SimulatedThread
from coordinator_core.simulator.clients.client import Client, ClientSetup, ConfigTopic
from coordinator_core.simulator.clients.connect import ConnectWorker
from coordinator_core.simulator.clients.consumer import Consumer
from coordinator_core.simulator.clients.share import ShareConsumer
from coordinator_core.simulator.clients.streams import StreamsThread
from coordinator_core.simulator.clients.worker import Worker
from coordinator_core.simulator.paired_shards import PairedShard
from coordinator_core.simulator.scenario import ASSIGNORS, GroupKind, Scenario, ScenarioGroup
from coordinator_core.simulator.scenario_events import Deploy, Event, Flap, Slow, Storm, Zombie
from coordinator_core.simulator.seeded_random import SeededRandom
from coordinator_core.simulator.shard import Shard
from coordinator_core.simulator.share_state import ShareStates
from coordinator_core.simulator.state_directory import StateDirectory
from coordinator_core.simulator.topic_plan import TopicPlan

CLIENTS: dict[str, type[Client]] = {
    "consumer": Consumer,
    "classic": ClassicConsumer,
    "share": ShareConsumer,
    "streams": StreamsThread,
    "classic-streams": SimulatedThread,
    "connect": ConnectWorker,
    "connect-kip-848": Worker,
}
MIGRATION_STEP_MS = 20_000
BACK_AT_ONCE_MS = 300
"""After this time a client that leaves in a storm starts again."""


class GroupRun:
    """One group of a simulation."""

    def __init__(self, shard: Shard, group_id: str, number: int, script: ScenarioGroup, chance: SeededRandom) -> None:
        self.shard = shard
        self.shards: dict[Family, Shard] = {shard.family: shard}
        if isinstance(shard, PairedShard) and script.migrates_workers:
            self.shards[shard.peer.family] = shard.peer
            self.shard = self.shards[Family.GROUP]
            shard.configure[group_id] = shard.peer.configure[group_id] = self._configure
        self.group_id = group_id
        self.number = number
        self.script = script
        self.chance = chance
        self.protocol: str = script.type
        self.topics = [shard.scenario.topic_name(name, number) for name in script.topics]
        self.assignor = script.assignor
        self.topology_epoch = 0
        self.clients: list[Client] = []
        self.configs = ConfigTopic()
        self.configs.write(script.connectors)
        for log in self.shards.values():
            log.clients[group_id] = self.clients
        if script.configs:
            shard.memory.configure_group(group_id, script.configs)
        self._actions: dict[str, Callable[..., None]] = {
            "join": self._join,
            "leave": self._leave,
            "crash": self._crash,
            "scale": self._scale,
            "deploy": self._deploy,
            "subscribe": self._subscribe,
            "assignor": self._assignor,
            "storm": self._storm,
            "flap": self._flap,
            "slow": self._slow,
            "zombie": self._zombie,
            "replace": self._replace,
            "migrate": self._migrate,
            "connectors": self._connectors,
            "topology": self._topology,
            "shutdown": self._shutdown,
            "delete": lambda _: self.shard.delete_group(self.group_id),
        }

    def schedule(self) -> None:
        """Put the start of the clients and all events into the shard's queue."""
        begin = self.shard.scenario.start_ms
        start = begin + self.script.starts + self.chance.below(self.script.spread)
        if self.script.family is Family.CONNECT:
            self.shard.at(begin, self._configure)
        for index in range(self.script.members):
            self.shard.at(start + index * self.script.step, self._add)
        for event in self.script.events:
            self.shard.at(begin + event.at, partial(self._happen, event))
        if self.script.chaos is not None:
            self.shard.at(start + self.chance.waiting(self.script.chaos.every), self._chaos)

    def _configure(self) -> None:
        shard = self.shards[Family.CONNECT]
        shard.configure_connect(self.group_id, {MAX_DELAY_CONFIG: str(self.script.delay)})
        shard.set_connect_work(self.group_id, self.configs.versions[self.configs.offset])

    def _add(self) -> None:
        self._client(self._setup()).start()

    def _setup(self) -> ClientSetup:
        index = len(self.clients)
        racks = self.shard.scenario.cluster.racks
        return ClientSetup(
            self.topics,
            self.script.regex,
            self.assignor,
            f"{self.group_id}-instance-{index}" if self.script.static else None,
            racks[index % len(racks)] if self.script.by_rack and racks else None,
            self.script.revocation,
            self.configs,
            self.script.versions,
            self.topology_epoch,
            StateDirectory(self.shard.scenario.start_ms, self.script.streams.changes, self.script.streams.restores),
        )

    def _client(self, setup: ClientSetup) -> Client:
        """One more client, which does not run yet."""
        index = len(self.clients)
        chance = self.chance.fork("client", index)
        shard = self.shards[Family.CONNECT if self.protocol == "connect-kip-848" else Family.GROUP]
        client = CLIENTS[self.protocol](shard, self.group_id, self.script, index, setup, chance)
        self.clients.append(client)
        return client

    def _running(self) -> list[Client]:
        return [client for client in self.clients if client.running]

    def _happen(self, event: Event) -> None:
        if event.every is not None:
            self.shard.later(event.every, partial(self._happen, event))
        self.shard.tell("event", self.group_id, action=event.action)
        self._actions[event.action](getattr(event, event.action))

    def _chaos(self) -> None:
        chaos = self.script.chaos
        if chaos is None:
            return
        self.shard.later(self.chance.waiting(chaos.every), self._chaos)
        action = self.chance.pick(chaos.of)
        if action == "join" and len(self._running()) >= chaos.most:
            action = "leave"
        if not self._running():
            action = "join"
        arguments = {"deploy": Deploy(), "zombie": Zombie(lasts=self.chance.between(1_000, 120_000))}
        self.shard.tell("event", self.group_id, action=action)
        self._actions[action](arguments.get(action, 1))

    # --- actions -----------------------------------------------------------------------------------------------------

    def _join(self, count: int) -> None:
        """Clients that stopped start again first; then new ones come."""
        stopped = [client for client in self.clients if not client.running][:count]
        for index in range(count):
            start = stopped[index].start if index < len(stopped) else self._add
            self.shard.later(index * self.script.step, start)

    def _leave(self, count: int) -> None:
        for client in self.chance.some(self._running(), count):
            client.leave()

    def _crash(self, count: int) -> None:
        for client in self.chance.some(self._running(), count):
            client.crash()

    def _scale(self, count: int) -> None:
        running = len(self._running())
        if running < count:
            self._join(count - running)
        else:
            self._leave(running - count)

    def _deploy(self, deploy: Deploy) -> None:
        for index, client in enumerate(self._running()):
            self.shard.later(index * deploy.step, partial(self._restart, client, deploy.away, deploy.versions))

    def _restart(self, client: Client, away_ms: int, versions: tuple[int, int] | None = None) -> None:
        if client.running:
            client.leave()
            client.setup.versions = versions or client.setup.versions
            self.shard.later(away_ms, client.start)

    def _storm(self, storm: Storm) -> None:
        for delay in range(0, storm.lasts, storm.every):
            self.shard.later(delay, self._bounce)

    def _bounce(self) -> None:
        running = self._running()
        if running:
            self._restart(self.chance.pick(running), BACK_AT_ONCE_MS)

    def _flap(self, flap: Flap) -> None:
        running = self._running()
        client = self.chance.pick(running) if running else self._client(self._setup())
        client.start()
        for delay in range(0, flap.lasts, flap.stay + flap.away):
            self.shard.later(delay + flap.stay, partial(self._restart, client, flap.away))

    def _slow(self, slow: Slow) -> None:
        for client in self.chance.some(self._running(), slow.members):
            client.setup.revocation_ms = slow.revocation

    def _zombie(self, zombie: Zombie) -> None:
        for client in self.chance.some(self._running(), 1):
            client.freeze(zombie.lasts)

    def _replace(self, count: int) -> None:
        """Another process starts with the instance id of one that still runs."""
        for client in self.chance.some(self._running(), count):
            self._client(client.setup).start()

    def _subscribe(self, topics: list[str]) -> None:
        self.topics = [self.shard.scenario.topic_name(name, self.number) for name in topics]
        for client in self.clients:
            client.subscribe(self.topics)

    def _assignor(self, name: str) -> None:
        self.assignor = name
        for client in self.clients:
            client.choose(name)

    def _migrate(self, protocol: str) -> None:
        """A rolling restart of all clients, which come back with the other protocol."""
        self.protocol = protocol
        for index, client in enumerate(self._running()):
            self.shard.later(index * MIGRATION_STEP_MS, partial(self._exchange, client))

    def _exchange(self, client: Client) -> None:
        client.leave()
        assignor = client.setup.assignor if client.setup.assignor in ASSIGNORS[self.protocol] else None
        successor = self._client(replace(client.setup, assignor=assignor))
        self.shard.later(BACK_AT_ONCE_MS, successor.start)

    def _connectors(self, connectors: dict[str, int]) -> None:
        self.configs.write(connectors)
        connect = self.shards.get(Family.CONNECT)
        if connect is not None and connect.group(self.group_id) is not None:
            connect.set_connect_work(self.group_id, connectors)
        for client in self.clients:
            if isinstance(client, ConnectWorker):
                client.configured()

    def _topology(self, deploy: Deploy) -> None:
        """A rolling restart, from which each client comes back with the next topology."""
        self.topology_epoch += 1
        for client in self.clients:
            client.setup.topology_epoch = self.topology_epoch
        self._deploy(deploy)

    def _shutdown(self, _: bool) -> None:
        for client in self.chance.some(self._running(), 1):
            if isinstance(client, StreamsThread):
                client.shut_down()


def simulation(
    scenario: Scenario,
    plan: TopicPlan,
    seed: int,
    partition: int,
    family: Family = Family.GROUP,
    only: GroupKind | None = None,
) -> Shard:
    """Return one log partition with all its groups, or ``only`` those of one type, ready to run."""
    of_partition = list(scenario.instances(partition, family, only))
    shard = Shard(scenario, plan, seed, partition, family)
    if any(script.migrates_workers for _, _, script in of_partition):
        other = Family.GROUP if family is Family.CONNECT else Family.CONNECT
        shard = PairedShard(scenario, plan, seed, partition, family, None)
        PairedShard(scenario, plan, seed, partition, other, shard)
    chance = SeededRandom(seed)
    for group_id, number, script in of_partition:
        GroupRun(shard, group_id, number, script, chance.fork("group", group_id)).schedule()
    return shard


def share_states(scenario: Scenario, plan: TopicPlan, seed: int, partition: int) -> ShareStates:
    """Return one partition of the share state log, ready to be written after all share groups were simulated."""
    activities = []
    for number in range(scenario.cluster.partitions):
        shard = simulation(scenario, plan, seed, number, only="share")
        for _ in shard.run():
            pass
        activities.append(shard.sharing)
    return ShareStates(scenario, plan, seed, partition, activities)
