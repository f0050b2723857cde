"""Groups of Connect workers that move to KIP-848, or back: they live in two logs, so two log partitions are simulated.

Each of the two is written by a simulation of its own. Both simulate both partitions, but only for the groups that move;
what happens to a group does not depend on what else is in its partition, so both see the same.
"""

from collections.abc import Callable, Iterator
from functools import partial

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.classic_workers import assignors_of
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.protocol import Request, RequestOutcome
from coordinator_core.groups.connect.state import is_to_be_downgraded
from coordinator_core.records import Family, Fields
from coordinator_core.simulator.clients.client import Client
from coordinator_core.simulator.ground_truth import EXPIRED, MOVED_BACK, TrueCause
from coordinator_core.simulator.log import Piece
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.shard import RETRY_MS, Shard
from coordinator_core.simulator.topic_plan import TopicPlan


class PairedShard(Shard):
    """One of the two log partitions. ``configure`` has, by group, what tells its coordinator on KIP-848 what to run.

    ``is_written``: it is the one whose log is asked for.
    """

    def __init__(
        self, scenario: Scenario, plan: TopicPlan, seed: int, partition: int, family: Family, peer: "PairedShard | None"
    ) -> None:
        super().__init__(scenario, plan, seed, partition, family)
        self.configure: dict[str, Callable[[], None]] = {}
        self.is_written = False
        self.peer = self
        if peer is not None:
            self.peer, peer.peer = peer, self
            self.clock = peer.clock

    @property
    def _in_order(self) -> "tuple[PairedShard, PairedShard]":
        """Both, the classic log first: at equal times both simulations do the same in the same order."""
        return (self, self.peer) if self.family is Family.GROUP else (self.peer, self)

    def schedule(self) -> None:
        """Put what happens to topics and brokers into the queue, for both partitions."""
        for shard in self._in_order:
            Shard.schedule(shard)

    def run(self) -> Iterator[Piece]:
        """Yield the log, piece by piece, as the simulation of both partitions proceeds."""
        self.is_written = True
        yield from super().run()

    def _flush(self, until: int) -> None:
        for shard in (self, self.peer):
            Shard._flush(shard, until)
            if not shard.is_written:
                shard._ready.clear()

    def send(self, client: Client, api: str, version: int, data: Fields, why: tuple[TrueCause, ...] = ()) -> None:
        """Send a request to the coordinator that has the group; the first worker on KIP-848 converts it."""
        if client.group_id not in self.configure:
            super().send(client, api, version, data, why)
        elif self.family is Family.GROUP:
            self._send_as_classic(client, api, version, data, why)
        elif api != "ConnectGroupHeartbeat" or data["memberEpoch"] != 0 or self._upgrade(client, version, data):
            super().send(client, api, version, data, why)

    def settle(
        self, outcome: RequestOutcome, group_id: str = "", why: tuple[TrueCause, ...] = (), how: str = EXPIRED
    ) -> None:
        """Carry out what follows from an operation; without workers of the new protocol the group is converted back."""
        super().settle(outcome, group_id, why, how)
        if self.family is Family.CONNECT and group_id in self.configure:
            self._maybe_downgrade(group_id)

    @property
    def _connect(self) -> ConnectCoordinatorState:
        memory = self._in_order[1].memory
        assert isinstance(memory, ConnectCoordinatorState)
        return memory

    def _send_as_classic(
        self, client: Client, api: str, version: int, data: Fields, why: tuple[TrueCause, ...]
    ) -> None:
        if not coordinator.serves_classic_workers(self._connect, client.group_id):
            super().send(client, api, version, data, why)
            return
        group = self._connect.group(client.group_id)
        known = None if group is None else group.members.get(data.get("memberId", ""))
        if api == "JoinGroup" and known is not None:
            offered = assignors_of((protocol["name"], protocol["metadata"]) for protocol in data["protocols"])
            if offered != known.assignors:
                # A coordinator that has loaded a classic group knows the protocol in use alone.
                same_names = [assignor.name for assignor in offered] == [assignor.name for assignor in known.assignors]
                why = (*why, TrueCause("member_changed" if same_names else "assignor_changed", known.member_id))
        Shard.send(self.peer, client, api, version, data, why)

    def _upgrade(self, client: Client, version: int, data: Fields) -> bool:
        """Convert the classic group if it has workers; return whether the request can be sent now."""
        group_id, api = client.group_id, "ConnectGroupHeartbeat"
        if self._is_loading or self.peer._is_loading:
            delay = max(self._up_at, self.peer._up_at) - self.now + client.chance.between(1, RETRY_MS)
            client.soon(delay, partial(self.send, client, api, version, data))
            return False
        if self._connect.group(group_id) is None:
            self.configure[group_id]()
        request = Request(api, version, client.client_id, data, client.host)
        converted = coordinator.upgrade_connect_group(self._connect, self.peer.memory, request, self.now)
        if converted is None:
            return True
        ended, begun = converted
        self.peer.settle(ended, group_id)
        if ended.error is not None:
            self.tell("refused", group_id, client_id=client.client_id, api=api, error=ended.error.code.name)
            client.refused(api, ended.error.code)
            return False
        super().settle(begun, group_id)
        return True

    def _maybe_downgrade(self, group_id: str) -> None:
        if not is_to_be_downgraded(self._connect.group(group_id)):
            return
        if self._is_loading or self.peer._is_loading:
            self.at(max(self._up_at, self.peer._up_at), partial(self._maybe_downgrade, group_id))
            return
        converted = coordinator.downgrade_connect_group(self._connect, self.peer.memory, group_id, self.now)
        assert converted is not None
        super().settle(converted[0], group_id)
        self.peer.settle(converted[1], group_id, (MOVED_BACK,))
