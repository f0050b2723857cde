"""The data of the report, for the page and the JSON. Times are in milliseconds since the epoch.

Lists have a maximum length. If a list is cut, another field has the total number.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from coordinator_core.audit.explain import Sentence
from coordinator_core.audit.findings.rows import FindingRow
from coordinator_core.records import LogPosition

FORMAT = 1
"""Format version of the data; raised by incompatible changes."""


class Gap(NamedTuple):
    """A range of missing offsets of a log partition."""

    first: Annotated[int, "first missing offset"]
    last: Annotated[int, "last missing offset"]


class LogCoverage(NamedTuple):
    """The part of one log partition that was read."""

    topic: Annotated[str, "the log's topic"]
    partition: Annotated[int, "the log's partition"]
    first_offset: Annotated[int, "first offset that is present"]
    last_offset: Annotated[int, "last offset that is present"]
    first_ms: Annotated[int, "earliest time of a record"]
    last_ms: Annotated[int, "latest time of a record"]
    records: Annotated[int, "number of offsets that are present"]
    missing: Annotated[int, "number of missing offsets in between: compacted, or not in the dump"]
    gap_count: Annotated[int, "number of gaps"]
    gaps: Annotated[tuple[Gap, ...], "the largest gaps, in order"]
    from_start: Annotated[bool, "the first segment of the partition was read"]


class AbsentPartitions(NamedTuple):
    """Partitions of a log topic that were not given, or that nothing shows to be empty."""

    topic: Annotated[str, "the log's topic"]
    partitions: Annotated[tuple[int, ...], "those without a record"]
    known: Annotated[int, "partition count; a lower bound if topics are unknown"]


class Spell(NamedTuple):
    """An interval over which a member owned the same partitions or tasks."""

    since: Annotated[LogPosition, "the record that begins it"]
    until_ms: Annotated[int | None, "when it ended; null: not ended"]
    units: Annotated[int, "number of partitions or tasks owned"]
    held: Annotated[str, "the partitions or tasks"]


class Member(NamedTuple):
    """One membership, from join to leave."""

    member_id: Annotated[str, "member id"]
    name: Annotated[str, "name that is stable across restarts: instance id, or client id and host"]
    rack_id: Annotated[str | None, "rack"]
    joined: Annotated[LogPosition, "the first record of the member"]
    came_by: Annotated[str, "how it joined"]
    left: Annotated[LogPosition | None, "the record that removes it; null: current member"]
    went_by: Annotated[str | None, "how it left"]
    hint: Annotated[str | None, "what the log suggests: leave or session expiry"]
    spells: Annotated[tuple[Spell, ...], "what it owned, in order of time"]


class Rebalance(NamedTuple):
    """One rebalance, with its explanation."""

    group_type: Annotated[str, "type of the group then"]
    log_topic: Annotated[str, "topic of the log in which its records lie"]
    at: Annotated[LogPosition, "the record that opens it (classic groups: completes it)"]
    from_epoch: Annotated[int | None, "previous epoch or generation"]
    to_epoch: Annotated[int, "new epoch or generation"]
    causes: Annotated[tuple[str, ...], "kinds of causes"]
    outcome: Annotated[str, "how it ended"]
    began_ms: Annotated[int, "latest possible begin"]
    ended_ms: Annotated[int | None, "when it ended; null: not ended"]
    duration_min_ms: Annotated[int | None, "minimum duration"]
    duration_max_ms: Annotated[int | None, "maximum duration; null: unknown"]
    verdict: Annotated[str | None, "verdict on its target; null: not judged, or no target"]
    judged: Annotated[str | None, "reason for the verdict: what fitted, differs or is missing"]
    members: Annotated[int | None, "number of members after it; null: not all members may be known"]
    moved: Annotated[int | None, "number of partitions or tasks that changed owner"]
    lost: Annotated[int | None, "number of partitions or tasks left without an owner"]
    idle_ms: Annotated[int | None, "total time that partitions or tasks had no owner"]
    held_up_by: Annotated[str | None, "the member that delayed it"]
    missing: Annotated[str | None, "information that the log lacks"]
    story: Annotated[tuple[Sentence, ...], "explanation in sentences, each with its evidence"]


class Broken(NamedTuple):
    """A violation of a rule."""

    rule: Annotated[str, "name of the rule"]
    severity: Annotated[str, "safety, protocol or notice"]
    says: Annotated[str, "what the rule says"]
    at: Annotated[LogPosition, "the record that violates it"]
    member_id: Annotated[str | None, "member id; null: the whole group"]
    detail: Annotated[str, "details"]


class Offsets(NamedTuple):
    """Committed offsets of one partition."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    offset: Annotated[int | None, "committed offset; null: removed"]
    last: Annotated[LogPosition, "the last commit"]
    commits: Annotated[int, "number of commits"]
    rewinds: Annotated[int, "number of rewinds: commits with a lower offset"]
    removed: Annotated[int, "number of tombstones"]
    lag: Annotated[int | None, "records up to the given end offset; null: none was given"]


class Count(NamedTuple):
    """A name and how often it occurs."""

    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls: the name is in the report's JSON


class GroupLine(NamedTuple):
    """Summary of one group."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS, CONNECT, or OFFSETS (only offset commits)"]
    state: Annotated[str, "last known state; GONE: deleted; UNKNOWN: records of the group are missing"]
    not_running: Annotated[str | None, "streams: why the group does not run although it has members; null: it runs"]
    epoch: Annotated[int | None, "last known epoch or generation"]
    assignor: Annotated[str | None, "assignor; null: not in the log"]
    members: Annotated[int, "number of current members"]
    members_seen: Annotated[int, "total number of members"]
    rebalances: Annotated[int, "number of rebalances"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]
    verdicts: Annotated[tuple[Count, ...], "verdicts on targets"]
    findings: Annotated[int, "number of findings"]
    broken: Annotated[int, "number of violations"]
    score: Annotated[float, "the highest score of a finding"]
    first_ms: Annotated[int | None, "time of the first event; null: no event has a time"]
    last_ms: Annotated[int | None, "time of the last event"]
    complete: Annotated[bool, "True: no part of its history is known to be missing"]


class LagLine(NamedTuple):
    """The lag of one partition of a group over time, at the moments for which the end offset is known.

    The fields ``times_ms``, ``ends``, ``committed``, ``lags`` and ``status`` have one entry for each moment.
    """

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    times_ms: Annotated[tuple[int, ...], "when the snapshots of the end offsets were taken, in order"]
    ends: Annotated[tuple[int, ...], "end offset of the partition then"]
    committed: Annotated[tuple[int | None, ...], "committed offset then; null: none, or not known"]
    lags: Annotated[tuple[int | None, ...], "lag then, in records; null: not known"]
    status: Annotated[tuple[str, ...], "Burrow's status: OK, WARN, STOP, STALL, REWIND; UNKNOWN"]


class NightLine(NamedTuple):
    """What one night found: a row of the table ``nights``. Null stands for unknown: the night did not count it."""

    night: Annotated[str, "id of the night; sorts by time"]
    ended_ms: Annotated[int, "when it was counted"]
    groups: Annotated[int | None, "number of groups"]
    rebalances: Annotated[int | None, "rebalances in the log so far"]
    new_rebalances: Annotated[int | None, "rebalances since the night before"]
    findings: Annotated[int | None, "number of findings"]
    violations: Annotated[int | None, "violations in the log so far"]
    new_violations: Annotated[int | None, "violations since the night before"]
    wrong_targets: Annotated[int | None, "targets in the log so far with the verdict divergent or invalid"]
    unstable: Annotated[int | None, "number of groups that did not run stably, by their findings"]
    total_lag: Annotated[int | None, "sum of the known lag of all groups; null: no end offset was known"]
    max_lag: Annotated[int | None, "the highest known lag of a partition"]
    lagging: Annotated[int | None, "partitions whose status was WARN, STOP, STALL or REWIND"]


class GroupDetail(NamedTuple):
    """One group in detail. The summary has the total numbers."""

    line: Annotated[GroupLine, "summary of the group"]
    findings: Annotated[tuple[FindingRow, ...], "findings, the most urgent first"]
    members: Annotated[tuple[Member, ...], "the last members, in order of joining"]
    rebalances: Annotated[tuple[Rebalance, ...], "the last rebalances, in order"]
    broken: Annotated[tuple[Broken, ...], "the first violations"]
    offsets: Annotated[tuple[Offsets, ...], "committed offsets, the first partitions"]
    offsets_seen: Annotated[int, "total number of partitions with committed offsets"]
    lag: Annotated[tuple[LagLine, ...], "lag over time, the highest first; empty: no end offsets"] = ()


class Bucket(NamedTuple):
    """Rebalances of one interval of time, of all groups."""

    since_ms: Annotated[int, "when it begins"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]


class Report(NamedTuple):
    """The whole report."""

    format: Annotated[int, "version of this data"]
    software: Annotated[str, "version of the software that made the report"]
    cluster: Annotated[str, "the cluster's name"]
    made_ms: Annotated[int, "when the report was made"]
    first_ms: Annotated[int | None, "earliest event; null: none"]
    last_ms: Annotated[int | None, "latest event"]
    coverage: Annotated[tuple[LogCoverage, ...], "coverage of each log partition"]
    absent: Annotated[tuple[AbsentPartitions, ...], "log partitions that were not given"]
    warnings: Annotated[tuple[str, ...], "the first warnings about data that could not be read"]
    warnings_seen: Annotated[int, "total number of warnings"]
    topics_known: Annotated[bool, "True: the metadata log was read"]
    types: Annotated[tuple[Count, ...], "groups by type"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]
    verdicts: Annotated[tuple[Count, ...], "targets by verdict"]
    findings_seen: Annotated[int, "total number of findings"]
    kinds: Annotated[tuple[Count, ...], "findings by kind"]
    findings: Annotated[tuple[FindingRow, ...], "the most urgent findings of all groups"]
    bucket_ms: Annotated[int, "length of an interval in ``activity``"]
    activity: Annotated[tuple[Bucket, ...], "rebalances over time"]
    groups: Annotated[tuple[GroupDetail, ...], "the groups: those with findings first, then by rebalances"]
    nights: Annotated[tuple[NightLine, ...], "the last nights, in order of time; empty: from log files"] = ()
