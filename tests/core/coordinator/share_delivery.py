"""The model of a share partition with its leader and its share coordinator, driven by a script.

``tests/broker/share_leader`` makes scripts. Each line is a step; the answer is the line with what was made of it.
"""

from collections.abc import Callable
from typing import Any

from coordinator_core.coordinator.config import BrokerConfig, GroupConfig
from coordinator_core.coordinator.protocol import ApiError
from coordinator_core.coordinator.share.delivery_types import Acknowledgement, DeliverySettings, LogBatch, StateWrite
from coordinator_core.coordinator.share.leader import SharePartitionLeader, as_told_by_leader
from coordinator_core.coordinator.share.share_coordinator import ShareCoordinator
from coordinator_core.groups.share.delivery import TERMINAL
from coordinator_core.groups.share.state_log import SharePartition, ShareStateRecord

Line = dict[str, Any]
WHICH = SharePartition("g1", "AAAAAAAAAAEAAAAAAAAAAQ", 0)

ANSWERS = frozenset(("records", "after", "error", "may_acquire", "next_fetch_offset", "deliveries"))


class ModelOfDelivery:
    """One share partition, its leader, its share coordinator, and the log of its records."""

    leader: SharePartitionLeader | None
    _coordinator: ShareCoordinator
    _settings: DeliverySettings

    def __init__(self) -> None:
        self._records: list[ShareStateRecord] = []

    def do_again(self, line: Line) -> Line:
        """Take a step that has been answered, and return it with the own answer."""
        return self.do({name: value for name, value in line.items() if name not in ANSWERS})

    def do(self, line: Line) -> Line:
        """Take one step."""
        if line["op"] == "header":
            self._begin(line)
            return line
        self._records = []
        if line["op"] == "settings":
            self._settings_change(line["settings"])
            return line | self._made({})
        return line | self._made(getattr(self, f"_{line['op']}")(line) or {})

    def _made(self, answer: Line) -> Line:
        written = [{"type": record.type, "value": record.value} for record in self._records]
        return answer | {"records": written, "after": self._after()}

    def _begin(self, header: Line) -> None:
        self.now = header["start_ms"]
        self._log: list[LogBatch] = []
        self.leader = None
        self._settings = DeliverySettings(header["lock_ms"], header["delivery_limit"], header["most_locks"])
        config = BrokerConfig(
            share_coordinator_snapshot_update_records_per_snapshot=header["snapshot_updates"],
            share_coordinator_cold_partition_snapshot_interval_ms=header["cold_ms"],
        )
        self._coordinator = ShareCoordinator(config)

    def _after(self) -> Line | None:
        leader = self.leader
        if leader is None:
            return None
        return {
            "start_offset": leader.start_offset,
            "end_offset": leader.end_offset,
            "delivery_complete_count": leader.delivery_complete_count,
            "in_flight": [
                [
                    batch.first,
                    batch.last,
                    [
                        [run.state, run.delivery_count, run.member_id]
                        for run in batch.runs
                        for _ in range(run.records if batch.is_split else 1)
                    ],
                ]
                for batch in leader.flight
            ],
        }

    def _initialize(self, line: Line) -> Line:
        try:
            record = self._coordinator.initialize(WHICH, line["state_epoch"], line["start_offset"], self.now)
        except ApiError as error:
            return {"error": error.code.name}
        self._records.append(record)
        return {"error": None}

    def _delete(self, line: Line) -> None:
        record = self._coordinator.delete(WHICH, self.now)
        if record is not None:
            self._records.append(record)

    def _cold(self, line: Line) -> None:
        self._records += self._coordinator.snapshot_cold_partitions(self.now)

    def _lead(self, line: Line) -> Line:
        self.leader = None
        epoch = line["leader_epoch"]
        try:
            state, record = self._coordinator.read(WHICH, epoch, self.now)
        except ApiError as error:
            return {"error": as_told_by_leader(error).code.name}
        if record is not None:
            self._records.append(record)
        assert state.state_epoch is not None
        state_epoch = state.state_epoch

        def write(each: StateWrite) -> None:
            self._records.append(self._coordinator.write(WHICH, state_epoch, epoch, each, self.now))

        self.leader = SharePartitionLeader(self._settings, write, state.start_offset, state.batches)
        return {"error": None}

    def _produce(self, line: Line) -> None:
        self._log.append(LogBatch(line["first"], line["last"], line.get("aborted", False)))

    def _compact(self, line: Line) -> None:
        self._log = [batch for batch in self._log if batch.first != line["first"]]

    def _delete_records(self, line: Line) -> None:
        self._log = [batch for batch in self._log if batch.last >= line["before"]]
        if self.leader is not None:
            _move_log_start(self.leader, line["before"])

    def _advance(self, line: Line) -> None:
        until = self.now + line["ms"]
        while self.leader is not None:
            due = self.leader.next_deadline_ms
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            self.leader.expire(self.now)
        self.now = until

    def _settings_change(self, settings: dict[str, Any]) -> None:
        self._settings = DeliverySettings.of(GroupConfig.of(BrokerConfig(), settings))
        if self.leader is not None:
            self.leader.settings = self._settings

    def _fetch(self, line: Line) -> Line:
        leader = self._led()
        may_acquire, offset = leader.may_acquire, leader.next_fetch_offset
        deliveries = leader.acquire(
            line["member"],
            offset,
            [batch for batch in self._log if batch.last >= offset][: line["batches"]],
            self.now,
            most_records=line["most_records"],
            batch_size=line["batch_size"],
            is_strict=line["is_strict"],
        )
        answer = {"may_acquire": may_acquire, "next_fetch_offset": offset}
        return {**answer, "deliveries": [list(each) for each in deliveries]}

    def _acknowledge(self, line: Line) -> Line:
        said = [Acknowledgement(first, last, tuple(types)) for first, last, types in line["batches"]]
        return _error(lambda: self._led().acknowledge(line["member"], said, self.now))

    def _release(self, line: Line) -> Line:
        return _error(lambda: self._led().release(line["member"]))

    def _led(self) -> SharePartitionLeader:
        assert self.leader is not None
        return self.leader


def _error(request: Callable[[], None]) -> Line:
    try:
        request()
    except ApiError as error:
        return {"error": error.code.name}
    return {"error": None}


def _move_log_start(leader: SharePartitionLeader, offset: int) -> None:
    """Let the leader take in that the records below an offset were deleted, which no simulated cluster does.

    What is written of it follows with the next write.
    """
    if offset <= leader.start_offset:
        return
    if not leader.flight:
        leader.start_offset = leader.end_offset = offset
        leader.delivery_complete_count = 0
        return
    # Before these are archived: what was available until now was never counted as settled.
    gone = sum(
        min(run.last, offset - 1) - max(run.first, leader.start_offset) + 1
        for batch in leader.flight
        for run in batch.runs
        if run.state in TERMINAL and run.first < offset and run.last >= leader.start_offset
    )
    leader.archive(leader.start_offset, offset - 1, leader.flight.batches)
    leader.start_offset = offset
    leader.delivery_complete_count -= gone
    leader.end_offset = max(leader.end_offset, offset)
