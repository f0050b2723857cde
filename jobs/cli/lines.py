"""The shapes of the lines that commands print with ``--json`` and that are not rows of a table.

Null: the log does not say, or the line has nothing of the kind. Times are in ISO 8601, UTC; a name that ends in ``_ms``
has milliseconds since 1970.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

from coordinator_core.coordinator.traces.compare import Difference
from coordinator_core.groups.described import Description


class ListedGroup(TypedDict):
    """A group. ``listComplete``: no other group can have been there without a trace in the log."""

    group: str
    type: str | None
    state: str | None
    stateAsOf: str | None
    epoch: int | None
    members: int | None
    offsets: int | None
    certainty: str
    listComplete: bool


class DescriptionLine(Description):
    """A described group; ``group`` is its id, with ``--all``."""

    group: NotRequired[str]


class OffsetLine(TypedDict):
    """A committed offset.

    ``status``: ``committed``, ``pending`` (its transaction is open), ``undecided`` (a dump does not show its
    transaction), or ``unknown``. ``logPartition`` and ``logOffset`` are the position of the commit. ``listComplete``:
    no other offset can have been committed without a trace in the log.
    """

    topic: str
    partition: int
    offset: int | None
    endOffset: int | None
    lag: int | None
    leaderEpoch: int | None
    metadata: str | None
    committed: str | None
    expires: str | None
    status: str
    producerId: int | None
    logPartition: int | None
    logOffset: int | None
    listComplete: bool


class OwnershipTime(TypedDict):
    """When a member got a unit and gave it up: member epoch, times, and positions as ``partition:offset``."""

    epoch: int | None
    since: str | None
    until: str | None
    log: str | None
    until_log: str | None


class ListFlag(TypedDict):
    """``list_complete``: no other line can be missing without a trace in the log."""

    list_complete: bool


class OwnerIntervalLine(OwnershipTime):
    """A time during which a member was the owner. ``history_complete``: its beginning is in the log."""

    group_id: str
    partition: int | None
    member_id: str
    role: str
    history_complete: bool


class OfGroup(TypedDict):
    """The group that the line is about."""

    group_id: str


class FollowedPath(TypedDict):
    """``history``: ``actual`` is what happened, ``hypothetical`` what would have happened.

    ``repeated`` is what happened, replayed in the same way as the hypothetical history: its distance from ``actual`` is
    the error of the method.
    """

    history: Literal["actual", "repeated", "hypothetical"]


CheckVerdict = Literal["passed", "failed", "unknown"]


class CheckLine(TypedDict):
    """The result of a check. ``expected``: the bound for the observed figure. ``about`` is what it looks at, and
    ``happened`` what it counted, null if nothing. A null ``cluster``: the check is of all clusters.
    """

    cluster: str | None
    suite: str
    check: str
    observed: float | None
    expected: str
    severity: str
    verdict: CheckVerdict
    about: str
    happened: str | None


class IngestedLine(TypedDict):
    """What was ingested of a log partition: offsets, records, control batches, and offsets that are not there.

    A null count: the dump does not tell. One made by a consumer has no batches, which show what compaction left out.
    """

    log: str
    first_offset: int | None
    last_offset: int | None
    records: int
    control: int
    compacted_offsets: int | None
    unknown_offsets: int | None
    missing_offsets: int | None
    damaged_offsets: int | None


class DecodedLine(TypedDict):
    """What was decoded of a log partition, and how many rows went into quarantine."""

    log: str
    records: int
    decoded: int
    quarantined: int
    control: int


class RebuiltLine(TypedDict):
    """A table that was damaged: whether a repair was enough, and where its old files or rows are."""

    table: str
    repaired: bool
    aside: str


class TableLine(TypedDict):
    """A table and the number of its rows."""

    table: str
    rows: int
    about: str


SettingLine = TypedDict("SettingLine", {"setting": str, "value": object, "from": str})
"""An effective setting; ``from``: default, or the file, environment variable or flag that sets it."""


class WatchedLine(TypedDict):
    """A line of a watch."""

    repeated: NotRequired[Annotated[Literal[True], "a watch that was killed may have told it before"]]


class WatchedBeginning(WatchedLine):
    """A rebalance that a watch saw begin."""

    event: Literal["rebalance_began"]


class WatchedEnd(WatchedLine):
    """A rebalance that a watch saw end; ``verdict``: that on its target, null if it was not judged."""

    event: Literal["rebalance_ended"]
    verdict: str | None


class WatchedFinding(WatchedLine):
    """A finding that began, grew or ended while a watch ran."""

    event: Literal["finding"]
    change: Literal["began", "grew", "ended"]


class WatchedLag(WatchedLine):
    """The lag of a group, whose status changed while a watch ran."""

    event: Literal["lag"]


class WrittenReport(TypedDict):
    """Where the report was written."""

    report: str


class WrittenProject(TypedDict):
    """Where the Great Expectations project was written."""

    project: str


class SnapshotLine(TypedDict):
    """The file of a snapshot, and what was added to it."""

    file: str
    topics: int
    partitions: int
    groups: int
    brokers: int
    features: dict[str, str] | None


class CaseId(TypedDict):
    """The field ``id`` of the case that the line is about."""

    id: object


class AssignedCase(CaseId):
    """The result of a case, in the form of the field ``expected`` of a case with a recorded result."""

    expected: object


class DifferingStep(TypedDict):
    """A step of a trace in which the model differs from the recording."""

    seed: int
    step: int
    operation: str
    differences: list[Difference]


class TraceSummary(TypedDict):
    """How many steps there were, and in how many the model did the same as the recording."""

    equal: int
    steps: int


class DumpedLine(TypedDict):
    """A record of a log, a control record, or an empty batch.

    ``key`` and ``value`` are decoded, with the names of Kafka's schemas (docs/records.md). ``error`` says why a record
    could not be decoded; ``keyBytes`` and ``valueBytes`` are its bytes in base64. ``batchBase`` and ``batchLast`` are
    the first and the last offset of the batch; ``timestamp`` is in milliseconds since 1970. ``folder`` is that of the
    copy, where a log partition has several.
    """

    partition: int | None
    segment: str
    folder: NotRequired[str]
    batchBase: int
    batchLast: int
    isTransactional: bool
    isControl: bool
    emptyBatch: NotRequired[Literal[True]]
    offset: NotRequired[int]
    timestamp: NotRequired[int]
    leaderEpoch: NotRequired[int]
    compression: NotRequired[str]
    tsType: NotRequired[str]
    producerId: NotRequired[int]
    producerEpoch: NotRequired[int]
    baseSequence: NotRequired[int]
    control: NotRequired[str]
    coordinatorEpoch: NotRequired[int]
    keySize: NotRequired[int]
    valueSize: NotRequired[int]
    type: NotRequired[int]
    typeName: NotRequired[str]
    key: NotRequired[dict[str, object] | None]
    valueVersion: NotRequired[int | None]
    value: NotRequired[dict[str, object] | None]
    error: NotRequired[str]
    keyBytes: NotRequired[str | None]
    valueBytes: NotRequired[str | None]
