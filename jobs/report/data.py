"""The data of the report, for the page and the JSON. Times are in milliseconds since the epoch.

Lists have a maximum length. If a list is cut, another field has the total number.
"""

from typing import Annotated, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.folds.commit_times import CommitCount
from coordinator_core.audit.sentences import Sentence
from coordinator_core.records import LogPosition
from jobs.tables.night_rows import NightRow

FORMAT = 5
"""Format version of the data; raised where a report that was made before is to be made again."""


class Count(NamedTuple):
    """A name and how often it occurs."""

    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls: the name is in the report's JSON


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
    client: Annotated[str, "the client library that it is, by what it wrote; `a or b`; unknown"]
    client_certainty: Annotated[str, "certain, likely, one of several, or unknown"]
    client_release: Annotated[str | None, "release of the client; null: not known"]
    spells: Annotated[tuple[Spell, ...], "what it owned, in order of time"]


class CausedBy(NamedTuple):
    """One cause of a rebalance, and the member that it is about."""

    kind: Annotated[str, "kind of the cause"]
    member_id: Annotated[str | None, "member id; null: the cause is about the group or its topics"]
    client_id: Annotated[str | None, "client id of the member; null: not in the log"]
    client_host: Annotated[str | None, "host of the member; null: not in the log"]
    instance_id: Annotated[str | None, "instance id of the member, if it is static"]
    topics: Annotated[tuple[str, ...], "topics or connectors that the cause is about"]
    detail: Annotated[str | None, "what changed"]
    hint: Annotated[str | None, "what the log suggests but does not prove"]
    source: Annotated[str, "the log of the record that proves it"]
    at: Annotated[LogPosition, "the record that proves it"]


class Initiator(NamedTuple):
    """A member, or a client under several member ids, with the rebalances that it caused."""

    name: Annotated[str, "instance id, or client id and host; the member id where others have the same name"]
    member_ids: Annotated[int, "number of its member ids"]
    rebalances: Annotated[int, "number of rebalances that it caused, alone or with others"]
    follow_ups: Annotated[int, "number of rebalances that only went on with one of them"]
    kinds: Annotated[tuple[Count, ...], "how often it had each kind of cause"]
    delayed: Annotated[int, "number of rebalances that it delayed"]
    last: Annotated[LogPosition, "the newest record that proves one of them"]


class Rebalance(NamedTuple):
    """One rebalance, with its explanation."""

    group_type: Annotated[str, "type of the group then"]
    log_topic: Annotated[str, "topic of the log in which its records lie"]
    at: Annotated[LogPosition, "the record that opens it (classic groups: completes it)"]
    from_epoch: Annotated[int | None, "previous epoch or generation"]
    to_epoch: Annotated[int, "new epoch or generation"]
    causes: Annotated[tuple[str, ...], "kinds of causes"]
    family: Annotated[str, "what its causes have in common, as in the chart of rebalances by cause"]
    caused_by: Annotated[tuple[CausedBy, ...], "the first causes, with the member of each"]
    more_causes: Annotated[int, "number of further causes"]
    follows: Annotated[int | None, "epoch of the rebalance that it only goes on with; null: it has own causes"]
    origin: Annotated[tuple[CausedBy, ...], "the first causes of that rebalance"]
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
    delayed_by: Annotated[str | None, "the member that delayed it"]
    doubled: Annotated[int, "number of partitions or tasks that it gave to a second owner"]
    missing: Annotated[str | None, "information that the log lacks"]
    story: Annotated[tuple[Sentence, ...], "explanation in sentences, each with its evidence"]


class Broken(NamedTuple):
    """A violation of a rule."""

    rule: Annotated[str, "name of the rule"]
    severity: Annotated[str, "safety, protocol or notice"]
    says: Annotated[str, "what the rule says"]
    at: Annotated[LogPosition, "the record that violates it"]
    source: Annotated[str, "the log in which it lies: group log, or share state log"]
    member_id: Annotated[str | None, "member id; null: the whole group"]
    detail: Annotated[str, "details"]


class OffsetsOverTime(NamedTuple):
    """Some commits of one partition, where no record is missing between them: those from which on an offset held.

    The fields have one entry for each. Between two whose numbers follow each other, nothing was committed.
    """

    times_ms: Annotated[tuple[int, ...], "from when on it held, in order"]
    offsets: Annotated[tuple[int | None, ...], "the committed offset; null: it was removed"]
    log_offsets: Annotated[tuple[int, ...], "the log offset of its record"]
    numbers: Annotated[tuple[int, ...], "its number among all commits of the partition from the first one here on"]
    begins: Annotated[bool, "True: the first one here is the first commit of the partition; nothing is missing before"]


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
    over_time: Annotated[OffsetsOverTime, "commits near the end of the log, spread over time"]


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
    clients: Annotated[str | None, "who leads, and how many members each client has, when last seen; null: all Java"]
    rebalances: Annotated[int, "number of rebalances"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]
    verdicts: Annotated[tuple[Count, ...], "verdicts on targets"]
    findings: Annotated[int, "number of findings"]
    broken: Annotated[int, "number of violations"]
    score: Annotated[float, "the highest score of a finding"]
    first_ms: Annotated[int | None, "time of the first event; null: no event has a time"]
    last_ms: Annotated[int | None, "time of the last event"]
    stands_still_ms: Annotated[int | None, "until when a group stands still that does not run: the end of the log"]
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


class OwnerSpell(NamedTuple):
    """One owner of a partition or task over an interval."""

    member_id: Annotated[str, "the owner"]
    since: Annotated[LogPosition, "the record with which it began"]
    until_ms: Annotated[int | None, "when it ended; null: it lasts"]


class OwnedUnit(NamedTuple):
    """A partition, task or connector, and its owners over time."""

    name: Annotated[str, "topic and partition, task, or connector, with the role unless it is the owner of a partition"]
    owners: Annotated[tuple[OwnerSpell, ...], "owners in log order; those of a share group overlap"]
    left_out: Annotated[int, "number of earlier owners that are not listed"]


class TwoOwnersSpan(NamedTuple):
    """Partitions or tasks that two members had at the same time, although one alone may have them."""

    since: Annotated[LogPosition, "the record that gave them to a second member"]
    until_ms: Annotated[int | None, "when no two members had any of them; null: it lasts"]
    units: Annotated[tuple[str, ...], "the first of them, named as the owned units are"]
    units_seen: Annotated[int, "number of all of them"]
    members: Annotated[tuple[str, ...], "ids of the members"]


class ShareSpell(NamedTuple):
    """A share partition while its state was of one kind."""

    phase: Annotated[str, "a SharedState"]
    since: Annotated[LogPosition, "the record of the share state log with which it began"]
    until_ms: Annotated[int | None, "when it ended; null: it lasts"]
    start_offset: Annotated[int | None, "first offset that was kept track of, at its end"]
    accepted: Annotated[int, "records acknowledged in it"]
    released: Annotated[int, "records given back in it"]
    archived: Annotated[int, "records given up in it: archived, or sent to the dead-letter queue"]
    redelivered: Annotated[int, "deliveries in it of records that had been delivered before"]


class ShareTimeline(NamedTuple):
    """A share partition over time."""

    name: Annotated[str, "topic and partition"]
    phases: Annotated[tuple[ShareSpell, ...], "phases in order of time"]
    left_out: Annotated[int, "number of earlier phases that are not listed"]


class GroupLag(NamedTuple):
    """The highest lag of a partition of one group over time."""

    group_id: Annotated[str, "the group"]
    times_ms: Annotated[tuple[int, ...], "moments for which an end offset is known, in order"]
    highest: Annotated[tuple[int | None, ...], "highest known lag of a partition at each moment; null: not known"]


class GroupDetail(NamedTuple):
    """One group in detail. The summary has the total numbers. Of a page that is kept as texts, these have the rest."""

    line: Annotated[GroupLine, "summary of the group"]
    findings: Annotated[tuple[FindingRow, ...], "findings, the most urgent first"] = ()
    members: Annotated[tuple[Member, ...], "the last members, in order of joining"] = ()
    rebalances: Annotated[tuple[Rebalance, ...], "the worst rebalance and the last ones, in order"] = ()
    worst: Annotated[int | None, "index of the worst rebalance in ``rebalances``; null: there was none"] = None
    worst_because: Annotated[str | None, "why it is the worst"] = None
    initiators: Annotated[tuple[Initiator, ...], "members that caused most rebalances"] = ()
    initiators_seen: Annotated[int, "total number of members that caused a rebalance"] = 0
    memberless: Annotated[int, "number of rebalances that no member caused, as far as the log shows"] = 0
    owned: Annotated[tuple[OwnedUnit, ...], "owners over time, of the partitions or tasks that changed owner most"] = ()
    owned_seen: Annotated[int, "total number of partitions or tasks with an owner"] = 0
    two_owners: Annotated[tuple[TwoOwnersSpan, ...], "partitions or tasks that had two owners, the first times"] = ()
    commits: Annotated[tuple[CommitCount, ...], "commit records over time"] = ()
    share_partitions: Annotated[tuple[ShareTimeline, ...], "share groups: the first share partitions over time"] = ()
    share_partitions_seen: Annotated[int, "total number of share partitions"] = 0
    broken: Annotated[tuple[Broken, ...], "the first violations"] = ()
    offsets: Annotated[tuple[Offsets, ...], "committed offsets, the first partitions"] = ()
    offsets_seen: Annotated[int, "total number of partitions with committed offsets"] = 0
    lag: Annotated[tuple[LagLine, ...], "lag over time, the highest first; empty: no end offsets"] = ()


class Bucket(NamedTuple):
    """Rebalances of one interval of time, of all groups."""

    since_ms: Annotated[int, "when it begins"]
    outcomes: Annotated[tuple[Count, ...], "rebalances by outcome"]
    causes: Annotated[tuple[Count, ...], "rebalances by family of causes; each rebalance counts once"]


class Worst(NamedTuple):
    """The worst rebalance of one group."""

    group_id: Annotated[str, "the group"]
    rebalance: Annotated[Rebalance, "the rebalance, without its explanation"]
    because: Annotated[str, "why it is the worst of its group"]


class Band(NamedTuple):
    """What lay over a time: a coordinator that was away or did not load, hosts that stood still, a deploy."""

    kind: Annotated[str, "kind of the finding that says so"]
    group_id: Annotated[str | None, "the group whose clients were deployed; null: the cluster"]
    since_ms: Annotated[int, "when it began"]
    until_ms: Annotated[int, "when it ended, or the log"]
    is_open: Annotated[bool, "true if it goes on at the end of the log"]
    detail: Annotated[str, "what was found, in a sentence"]


class ReportedFeature(NamedTuple):
    """The level of a feature that the cluster works with, as the metadata log says."""

    name: Annotated[str, "the feature, such as group.version"]
    level: Annotated[int, "its level; 0: off"]
    since: Annotated[LogPosition, "the record of the metadata log that says so"]


class ReportedCheck(NamedTuple):
    """One check of the tables, as it was made last."""

    check: Annotated[str, "the measure, or the table and the column"]
    verdict: Annotated[str, "passed, failed or unknown"]
    severity: Annotated[str, "critical (a failure fails the run), warning or info"]
    about: Annotated[str, "what it looks at"]
    happened: Annotated[str | None, "what is wrong, or why it is unknown; null: it passed, or the tables do not say"]
    observed: Annotated[float | None, "what was measured; null: not computed, or not a number"]
    bound: Annotated[str, "what is expected of it"]


class Report(NamedTuple):
    """The whole report."""

    format: Annotated[int, "version of this data"]
    software: Annotated[str, "version of the software that made the report"]
    cluster: Annotated[str, "the cluster's name"]
    made_ms: Annotated[int, "when the report was made"]
    first_ms: Annotated[int | None, "earliest event; null: none"]
    last_ms: Annotated[int | None, "latest event; where a group cannot run, the end of the log"]
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
    families: Annotated[tuple[Count, ...], "rebalances by family of causes"]
    commits: Annotated[tuple[CommitCount, ...], "commit records of all groups over time"]
    worst: Annotated[tuple[Worst, ...], "the worst rebalances, one for each of a few groups"]
    lag: Annotated[tuple[GroupLag, ...], "highest lag over time of the groups with most; empty: no end offsets"]
    groups: Annotated[tuple[GroupDetail, ...], "the groups: those with findings first, then by rebalances"]
    nights: Annotated[tuple[NightRow, ...], "the last nights, in order of time; empty: from log files"] = ()
    bands: Annotated[tuple[Band, ...], "what explains a time, as deploys do: bands in the charts"] = ()
    checks: Annotated[tuple[ReportedCheck, ...], "the checks that were made last; empty: from log files"] = ()
    features: Annotated[tuple[ReportedFeature, ...], "levels of features at the end, as far as the log shows"] = ()
    since_ms: Annotated[int | None, "findings and rebalances from this time on; null: from the first one on"] = None
    until_ms: Annotated[int | None, "findings and rebalances up to this time; null: up to the last one"] = None
