"""Events in a broker's application log: what the coordinator said in words of a decision that it took."""

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.records import LogPosition


class EventKind(StrEnum):
    """What a line says; ``schemas/broker_log`` has the pattern of each. ``FILE_BEGINS`` and ``FILE_ENDS`` are the first
    and the last line of a file that have a time, whatever they say.
    """

    FILE_BEGINS = "file_begins"
    FILE_ENDS = "file_ends"
    MEMBER_LEFT = "member_left"
    MEMBER_AWAY = "member_away"
    MEMBER_EXPIRED = "member_expired"
    MEMBER_TIMED_OUT = "member_timed_out"
    MEMBER_FENCED = "member_fenced"
    STATIC_MEMBER_FENCED = "static_member_fenced"
    STATIC_MEMBER_REPLACED = "static_member_replaced"
    REBALANCE_BEGAN = "rebalance_began"
    GENERATION_JOINED = "generation_joined"
    GENERATION_ASSIGNED = "generation_assigned"
    GROUP_EMPTIED = "group_emptied"
    LEADER_LATE = "leader_late"
    EPOCH_BUMPED = "epoch_bumped"
    TARGET_COMPUTED = "target_computed"
    OFFSET_EXPIRED = "offset_expired"
    CLEANED_UP = "cleaned_up"
    OFFSETS_DELETED = "offsets_deleted"
    OFFSETS_REMOVED = "offsets_removed"
    GROUP_DELETED = "group_deleted"
    BROKER_RELEASE = "broker_release"
    COORDINATOR_LOADING = "coordinator_loading"
    COORDINATOR_LOADED = "coordinator_loaded"
    COORDINATOR_UNLOADED = "coordinator_unloaded"
    COORDINATOR_RELOADS = "coordinator_reloads"
    COORDINATOR_FAILED = "coordinator_failed"
    COORDINATOR_STOPPED = "coordinator_stopped"
    WRITE_FAILED = "write_failed"
    REQUEST_ALLOWED = "request_allowed"
    REQUEST_DENIED = "request_denied"
    CONVERSION_REFUSED = "conversion_refused"
    LOG_CREATED = "log_created"
    LOG_DELETED = "log_deleted"


class BrokerEvent(NamedTuple):
    """What one line of a broker's application log says of the coordinator; a line about several members has several."""

    file: Annotated[str, "name of the log file"]
    line: Annotated[int, "number of the line in the file, from 1"]
    kind: Annotated[str, "what the line says, such as member_left"]
    group_id: Annotated[str | None, "the group"]
    member_id: Annotated[str | None, "the member that it is about"]
    instance_id: Annotated[str | None, "that member's instance id, if the line names it"]
    epoch: Annotated[int | None, "group epoch, generation or leader epoch that it names"]
    reason: Annotated[str | None, "why, in the words of the broker or the client"]
    duration_ms: Annotated[int | None, "the duration that it names, in ms"]
    topic: Annotated[str | None, "topic that it is about"]
    partition: Annotated[int | None, "partition of that topic"]
    broker_id: Annotated[int | None, "the broker that wrote it; null: the line does not say"]
    log_partition: Annotated[int | None, "partition of __consumer_offsets; null: the line does not say"]
    level: Annotated[str | None, "level of the line, such as INFO; null: the layout has none"]
    written: Annotated[str, "the time as the line has it"]
    local_ms: Annotated[int | None, "that time as if its zone were UTC"]
    timestamp_ms: Annotated[int | None, "that time, ms since the epoch; null: the zone is not known"]
    text: Annotated[str, "the message, at most 500 characters"]
    record: Annotated[LogPosition | None, "the record that it belongs to; null: none is known"] = None
    resolution_ms: Annotated[int, "how exact the time is"] = 1

    @property
    def latest_ms(self) -> int | None:
        """The last time, ms since the epoch, at which the line may have been written; None: its zone is not known."""
        return None if self.timestamp_ms is None else self.timestamp_ms + (self.resolution_ms or 1) - 1

    @property
    def place(self) -> str:
        """File and line, as answers name it."""
        return f"{self.file}:{self.line}"

    @property
    def quote(self) -> str:
        """The line as answers quote it: file, number, and the message."""
        return f"{self.place}: {self.text}"
