"""A worker of a Connect group as proposed on KIP-848: it runs what it is assigned, and computes assignments when
asked.
"""

from coordinator_core.assignors.client.claimed_partitions import NO_GENERATION
from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.assignors.inputs import ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.leader_round import DeclaredTarget, declare_target
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields, from_fields
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.groups.connect.describe import is_reconciled
from coordinator_core.record_fields.embedded import ConnectProtocolMetadata
from coordinator_core.records import Fields
from coordinator_core.simulator.clients.connect import EAGER, VERSIONS
from coordinator_core.simulator.clients.epoch_client import ReconcilingClient
from coordinator_core.simulator.ground_truth import TrueCause
from coordinator_core.wire.embedded import decode_blob, encode_blob

PREPARE_API, INSTALL_API = "ConnectGroupPrepareAssignment", "ConnectGroupInstallAssignment"

Work = frozenset[ConnectorOrTask]
"""Connectors and tasks."""


class Worker(ReconcilingClient):
    """Stops within a while what it should no longer run, and reports what it runs whenever that changed.

    Its member id is its address, so it survives restarts. When chosen to compute the assignment, it reads the config
    topic to its end and lets Connect's own assignor decide.
    """

    heartbeat_api = "ConnectGroupHeartbeat"
    commits = False

    def reset(self) -> None:
        """Forget former computations, as a new process does; the address stays."""
        self.member_id = f"{self.client_id}:8083"
        self._memory: object = None
        self._completed = NO_GENERATION
        self.abandon()

    def abandon(self) -> None:
        """Return to epoch 0, without work."""
        super().abandon()
        self._runs: Work = frozenset()
        self._wanted: Work = frozenset()
        self._decided: DeclaredTarget | None = None
        self._computing = False

    def join(self) -> None:
        """Send the first heartbeat, with the assignors."""
        self._news = {"connectorsAndTasks": []}
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat with what changed since the last one."""
        if self.epoch == 0:
            self._news |= {"rebalanceTimeoutMs": self.script.rebalance_timeout, "clientAssignors": self._assignors()}
        self.tell(self.epoch, self._news, self._why())

    def _assignors(self) -> list[Fields]:
        """Those of the assignor that it is configured with and of the ones before it."""
        wanted = VERSIONS[self.setup.assignor or EAGER]
        low, high = self.setup.versions
        url = {"url": f"http://{self.member_id}/", "configOffset": self.setup.configs.offset}
        return [
            {
                "name": name,
                "minimumVersion": low,
                "maximumVersion": high,
                "reason": 0,
                "version": low,
                "metadata": encode_blob("ConnectProtocolMetadata", 0, url),
            }
            for name, version in sorted(VERSIONS.items(), key=lambda entry: -entry[1])
            if version <= wanted
        ]

    def _why(self) -> tuple[TrueCause, ...]:
        """What this heartbeat changes beside the membership."""
        given, memory = self._news.get("clientAssignors"), self.shard.memory
        group = memory.group(self.group_id) if isinstance(memory, ConnectCoordinatorState) else None
        known = None if group is None else group.members.get(self.member_id)
        if given is None or known is None:
            return ()
        names = [assignor["name"] for assignor in given]
        if names != [assignor.name for assignor in known.assignors]:
            return (TrueCause("assignor_changed", self.member_id),)
        same = all(
            (new["minimumVersion"], new["maximumVersion"], new["version"], new["metadata"])
            == (was.minimum_version, was.maximum_version, was.version, was.metadata)
            for new, was in zip(given, known.assignors, strict=True)
        )
        return () if same else (TrueCause("member_changed", self.member_id),)

    def choose(self, assignor: str) -> None:
        """Offer this assignor with the next heartbeat."""
        self.setup.assignor = assignor
        if self.running and self.epoch > 0:
            self._news["clientAssignors"] = self._assignors()
            self.beat_in(self.chance.between(1, self.script.heartbeat))

    # --- answers -----------------------------------------------------------------------------------------------------

    def answered(self, api: str, response: Fields) -> None:
        """Take over the new epoch and begin to reconcile new work; continue a computation."""
        if api == PREPARE_API:
            self._compute(response)
        elif api == INSTALL_API:
            self._installed()
        elif response["memberEpoch"] >= 0 and self.running:
            self._take_response(response)

    def refused(self, api: str, error: ErrorCode) -> None:
        """End a computation that is refused; the coordinator asks again."""
        if api == self.heartbeat_api:
            super().refused(api, error)
        else:
            self._computing = False

    def _take_response(self, response: Fields) -> None:
        error = ErrorCode(response["errorCode"])
        if error not in (ErrorCode.NONE, ErrorCode.COMPUTE_ASSIGNMENT):
            self.refused(self.heartbeat_api, error)
            return
        self.epoch = response["memberEpoch"]
        self._news = {}
        if error is ErrorCode.COMPUTE_ASSIGNMENT and not self._computing:
            self._computing = True
            self.soon(self.chance.between(1, 20), self._prepare)
        if response["assignment"] is not None:
            self._wanted = frozenset(from_fields(response["assignment"]["connectorsAndTasks"]))
        self.reconcile(asked_back=bool(self._runs - self._wanted), changed=self._runs != self._wanted)

    def take_over(self) -> None:
        """Run the assigned work."""
        self._runs = self._wanted
        self._news["connectorsAndTasks"] = as_fields(self._runs)
        self.beat_in(self.chance.between(1, 20))

    def settled(self) -> bool:
        """Whether it is at its target, with nothing to report or to compute."""
        memory = self.shard.memory
        group = memory.group(self.group_id) if isinstance(memory, ConnectCoordinatorState) else None
        member = None if group is None else group.members.get(self.member_id)
        return (
            group is not None
            and member is not None
            and not self._news
            and not self._computing
            and self.epoch == group.group_epoch == group.assignment_epoch
            and is_reconciled(group, member)
        )

    # --- computations ------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self.shard.send(self, PREPARE_API, 0, self.identity(self.epoch))

    def _compute(self, prepared: Fields) -> None:
        """Let the assignor decide by what the workers run and by the newest configuration."""
        eager = prepared["assignorName"] == EAGER
        workers = {member["memberId"]: _worker(member, eager) for member in prepared["members"]}
        configs = self.setup.configs
        spec = ConnectGroupSpec(
            workers,
            self.member_id,
            configs.versions.get(configs.offset, {}),
            configs.offset,
            prepared["groupEpoch"],
            self._completed,
            self.shard.now,
            self.script.delay,
            self._memory,
        )
        self._decided = declare_target(prepared["assignorName"], spec)
        members = [
            {"memberId": member_id, "connectorsAndTasks": as_fields(work.units()), "version": self.setup.versions[0]}
            for member_id, work in self._decided.works.items()
        ]
        data = self.identity(self.epoch) | {"groupEpoch": prepared["groupEpoch"], "members": members}
        self.soon(self.chance.between(5, 50), lambda: self.shard.send(self, INSTALL_API, 0, data))

    def _installed(self) -> None:
        self._computing = False
        if self._decided is not None:
            self._memory, self._completed = self._decided.memory, self._decided.generation


def _worker(member: Fields, eager: bool) -> WorkerSpec:
    """A worker as its metadata says; the eager assignor does not look at what it runs."""
    metadata = decode_blob(ConnectProtocolMetadata, member["assignor"]["metadata"]).fields
    units = [] if eager else from_fields(member["connectorsAndTasks"])
    connectors = [unit for unit in units if isinstance(unit, str)]
    tasks = [unit for unit in units if not isinstance(unit, str)]
    return WorkerSpec(metadata["url"], metadata["configOffset"], connectors, tasks)
