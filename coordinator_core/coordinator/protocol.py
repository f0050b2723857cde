"""The input and output of the coordinator: requests, outcomes, errors and timers, all plain data."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple

from typing_extensions import TypeVar

from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.records import AnyRecord, Fields

NO_TOPIC_ID = "A" * 22
"""Kafka's ``Uuid.ZERO_UUID``: the topic is not known."""


class ErrorCode(IntEnum):
    """The error codes of Kafka's protocol that a group coordinator returns (org.apache.kafka.common.protocol.Errors).

    The last three are those of Connect groups on KIP-848, to which the document gives no numbers.
    """

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    UNSUPPORTED_VERSION = 35
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_LEADER_EPOCH = 74
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    UNKNOWN_TOPIC_ID = 100
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_RECORD_STATE = 121
    FENCED_STATE_EPOCH = 124
    INVALID_REGULAR_EXPRESSION = 128
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    COMPUTE_ASSIGNMENT = 10_001
    INVALID_ASSIGNMENT = 10_002
    FATAL = 10_003


MESSAGES = {
    ErrorCode.ILLEGAL_GENERATION: "Specified group generation id is not valid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.REBALANCE_IN_PROGRESS: "The group is rebalancing, so a rejoin is needed.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.FENCED_INSTANCE_ID: (
        "The broker rejected this static consumer since another consumer with the same group.instance.id has "
        "registered with a different member.id."
    ),
}
"""Kafka's messages of errors that are thrown without one of their own."""


class ApiError(CoordinatorAuditError):
    """The refusal of a request with an error code of the protocol; its records are not written.

    Raised only inside an operation: the sender of the request finds it in ``RequestOutcome.error``.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = MESSAGES.get(code, code.name) if message is None else message
        super().__init__(f"{code.name}: {self.message}")


DataT_co = TypeVar("DataT_co", covariant=True, default=Fields)
OtherT = TypeVar("OtherT")


@dataclass(frozen=True, slots=True)
class Request(Generic[DataT_co]):
    """One request: the API by Kafka's name, its version, and the data in Kafka's JSON field names (bytes as bytes).

    As it arrives, the data is any dictionary; ``request_fields.checked`` gives it a type of
    ``record_fields.coordinator_requests``. ``client_host`` is the address in Java's form, with a slash.
    ``correlation`` says which request a delayed answer belongs to; the caller numbers its requests as it likes.
    """

    api: str
    version: int
    client_id: str
    data: DataT_co
    client_host: str = "/127.0.0.1"
    correlation: int = 0

    def with_data(self, data: OtherT) -> "Request[OtherT]":
        """Return the same request with other data."""
        return Request(self.api, self.version, self.client_id, data, self.client_host, self.correlation)


AnyRequest = Request[object]
"""A request with data of any type."""


class Timer(NamedTuple):
    """An armed timer: at ``deadline_ms`` the caller runs ``action`` (see ``coordinator.TIMERS``) with ``args``."""

    key: str
    deadline_ms: int
    action: str
    group_id: str
    args: tuple[object, ...] = ()


class Task(NamedTuple):
    """Work that a broker does in the background; the caller completes it when it likes."""

    key: str
    action: str
    group_id: str
    args: tuple[object, ...] = ()


class Completed(NamedTuple):
    """The response to a request that had been left pending."""

    request: AnyRequest
    response: Fields


@dataclass(slots=True)
class RequestOutcome:
    """The outcome of one operation.

    ``records`` are already applied to the state and have to be appended to the log, in one batch, in this order, as
    part of the transaction of ``producer_id`` if there is one. ``response`` is the response in Kafka's JSON field names
    of the request's version; it is None if there is an ``error``, or if the response is ``pending`` and comes as one of
    the ``completed`` of a later operation. ``timers`` has every timer that was armed (its data) or cancelled (None),
    ``tasks`` the background work that was scheduled. ``effects`` are requests to others (share state, topic creation).
    """

    records: list[AnyRecord] = field(default_factory=list)
    response: Fields | None = None
    error: ApiError | None = None
    pending: bool = False
    completed: list[Completed] = field(default_factory=list)
    timers: dict[str, Timer | None] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    effects: Fields = field(default_factory=dict)
    producer_id: int | None = None
