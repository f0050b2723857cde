"""The report as data: what the page shows and the JSON holds. Times are milliseconds since the epoch.

Lists are bounded; where something is left out, a number beside the list says how much there is.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from coordinator_core.audit.explain import Sentence
from coordinator_core.audit.findings.rows import FindingRow
from coordinator_core.records import LogPosition

FORMAT = 1
"""Version of this data; a change that breaks readers raises it."""


class Gap(NamedTuple):
    """Offsets of a log partition that are not there."""

    first: Annotated[int, "first missing offset"]
    last: Annotated[int, "last missing offset"]


class LogCoverage(NamedTuple):
    """What is there of one log partition."""

    topic: Annotated[str, "the log's topic"]
    partition: Annotated[int, "the log's partition"]
    first_offset: Annotated[int, "first offset there"]
    last_offset: Annotated[int, "last offset there"]
    first_ms: Annotated[int, "earliest time of a record"]
    last_ms: Annotated[int, "latest time of a record"]
    records: Annotated[int, "offsets that are there"]
    missing: Annotated[int, "offsets in between that are not: compacted away, or not in the dump"]
    gap_count: Annotated[int, "how many gaps there are"]
    gaps: Annotated[tuple[Gap, ...], "the largest of them, in order"]
    from_start: Annotated[bool, "the partition's first segment is there"]


class AbsentPartitions(NamedTuple):
    """Partitions of a log topic that were not given, or of which nobody says that they are empty."""

    topic: Annotated[str, "the log's topic"]
    partitions: Annotated[tuple[int, ...], "those without a record"]
    known: Annotated[int, "partitions that it has, or at least has where topics are unknown"]


class Spell(NamedTuple):
    """An interval over which a member held the same partitions or tasks."""

    since: Annotated[LogPosition, "the record with which it began"]
    until_ms: Annotated[int | None, "when it ended; null while it lasts"]
    units: Annotated[int, "partitions or tasks held"]
    held: Annotated[str, "which"]


class Member(NamedTuple):
    """One member over its life."""

    member_id: Annotated[str, "the member"]
    name: Annotated[str, "what stays the same when it starts again: instance id, or client id and host"]
    rack_id: Annotated[str | None, "its rack"]
    joined: Annotated[LogPosition, "the record that first shows it"]
    came_by: Annotated[str, "how it came"]
    left: Annotated[LogPosition | None, "the record that removes it; null while it is there"]
    went_by: Annotated[str | None, "how it went"]
    hint: Annotated[str | None, "what the log suggests of leave or expiry"]
    spells: Annotated[tuple[Spell, ...], "what it held, in order of time"]


class Rebalance(NamedTuple):
    """One rebalance, with its story."""

    at: Annotated[LogPosition, "the record that opens it (classic: that completes it)"]
    from_epoch: Annotated[int | None, "epoch or generation before"]
    to_epoch: Annotated[int, "epoch or generation that it leads to"]
    causes: Annotated[tuple[str, ...], "why: kinds of causes"]
    outcome: Annotated[str, "how it ended"]
    began_ms: Annotated[int, "it began at this time or before"]
    ended_ms: Annotated[int | None, "when it ended; null while it lasts"]
    duration_min_ms: Annotated[int | None, "it lasted at least so long"]
    duration_max_ms: Annotated[int | None, "it lasted at most so long; null: unknown"]
    verdict: Annotated[str | None, "verdict on its target: a Verdict; null: not judged, or no target"]
    judged: Annotated[str | None, "what the verdict rests on: what fitted, differs or is missing"]
    members: Annotated[int | None, "members that it is for; null: not all may be known"]
    moved: Annotated[int | None, "partitions or tasks that changed hands"]
    lost: Annotated[int | None, "partitions or tasks left to nobody"]
    idle_ms: Annotated[int | None, "time that nobody had them, summed"]
    held_up_by: Annotated[str | None, "the member that it waited for"]
    missing: Annotated[str | None, "what of it is not in the log"]
    story: Annotated[tuple[Sentence, ...], "what happened, each sentence with its evidence"]


class Broken(NamedTuple):
    """A broken rule."""

    rule: Annotated[str, "the rule"]
    severity: Annotated[str, "safety, protocol or notice"]
    says: Annotated[str, "what the rule says"]
    at: Annotated[LogPosition, "the record that breaks it"]
    member_id: Annotated[str | None, "the member; null: the group"]
    detail: Annotated[str, "the figures"]


class Offsets(NamedTuple):
    """Committed offsets of one partition."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    offset: Annotated[int | None, "committed offset; null: removed"]
    last: Annotated[LogPosition, "the last commit"]
    commits: Annotated[int, "commits seen"]
    rewinds: Annotated[int, "commits that went back"]
    removed: Annotated[int, "tombstones seen"]
    lag: Annotated[int | None, "records to the end offset that was given; null: none was"]


class Count(NamedTuple):
    """A name and how often it occurs."""

    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls: the name is in the report's JSON


class GroupLine(NamedTuple):
    """One group at a glance."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS, CONNECT, or OFFSETS where only commits were seen"]
    state: Annotated[str, "its state when last seen; GONE where it was deleted, UNKNOWN where records of it are lost"]
    epoch: Annotated[int | None, "epoch or generation when last seen"]
    assignor: Annotated[str | None, "its assignor, as far as the log tells"]
    members: Annotated[int, "members there at the end"]
    members_seen: Annotated[int, "members ever seen"]
    rebalances: Annotated[int, "rebalances seen"]
    outcomes: Annotated[tuple[Count, ...], "their outcomes"]
    verdicts: Annotated[tuple[Count, ...], "verdicts on targets"]
    findings: Annotated[int, "findings"]
    broken: Annotated[int, "broken rules"]
    score: Annotated[float, "the highest score of a finding"]
    first_ms: Annotated[int | None, "first event; null: none with a time"]
    last_ms: Annotated[int | None, "last event"]
    complete: Annotated[bool, "nothing is known to be missing of its history"]


class GroupDetail(NamedTuple):
    """One group in full, within bounds; counts of the line say how much there is."""

    line: Annotated[GroupLine, "the group at a glance"]
    findings: Annotated[tuple[FindingRow, ...], "findings, the most urgent first"]
    members: Annotated[tuple[Member, ...], "the last members, in order of joining"]
    rebalances: Annotated[tuple[Rebalance, ...], "the last rebalances, in order"]
    broken: Annotated[tuple[Broken, ...], "the first broken rules"]
    offsets: Annotated[tuple[Offsets, ...], "committed offsets, the first partitions"]
    offsets_seen: Annotated[int, "partitions with committed offsets, ever"]


class Bucket(NamedTuple):
    """Rebalances of one interval of time, of all groups."""

    since_ms: Annotated[int, "when it begins"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]


class Report(NamedTuple):
    """All of it."""

    format: Annotated[int, "version of this data"]
    software: Annotated[str, "version of the software that made it"]
    cluster: Annotated[str, "the cluster's name"]
    made_ms: Annotated[int, "when it was made"]
    first_ms: Annotated[int | None, "earliest event; null: none"]
    last_ms: Annotated[int | None, "latest event"]
    coverage: Annotated[tuple[LogCoverage, ...], "what is there of each log partition"]
    absent: Annotated[tuple[AbsentPartitions, ...], "log partitions that were not given"]
    warnings: Annotated[tuple[str, ...], "what could not be read, the first of it"]
    warnings_seen: Annotated[int, "how much could not be read"]
    topics_known: Annotated[bool, "the logs say which topics existed when"]
    types: Annotated[tuple[Count, ...], "groups by type"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]
    verdicts: Annotated[tuple[Count, ...], "targets by verdict"]
    findings_seen: Annotated[int, "findings in all"]
    kinds: Annotated[tuple[Count, ...], "findings by kind"]
    findings: Annotated[tuple[FindingRow, ...], "the most urgent of all groups"]
    bucket_ms: Annotated[int, "length of an interval of activity"]
    activity: Annotated[tuple[Bucket, ...], "rebalances over time"]
    groups: Annotated[tuple[GroupDetail, ...], "the groups: those with findings first, then by rebalances"]
