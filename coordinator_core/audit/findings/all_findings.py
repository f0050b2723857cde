"""All findings of one group, the most urgent first, and those of a cluster."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, urgency
from coordinator_core.audit.findings import (
    balance,
    broker_lines,
    committed_offsets,
    connect,
    group_settings,
    membership,
    mixtures,
    rebalances,
    record_faults,
    resets,
    share,
    streams,
    work_owners,
)
from coordinator_core.audit.findings.of_cluster import ClusterSigns, ShowsAll, about_cluster, marked
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, first_of
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.audit.folds.two_logs import by_log
from coordinator_core.audit.rows import WRONG, TargetAuditRow, Verdict
from coordinator_core.groups.rules import NOTICES, Rule
from coordinator_core.groups.violations import Violation

Finder = Callable[[GroupHistory, Thresholds], Iterator[FindingRow]]


def broken_rules(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for all protocol violations of each log. Notices do not count, nor do second owners of which
    a finding of their own tells.
    """
    of_logs = defaultdict[bool, list[Violation]](list)
    told = {span.at for span in work_owners.two_owners_of(history)}
    for row in history.violations:
        # Their own finding says it with the members and the time: it is not told twice.
        is_told = row.rule == Rule.ASSIGNED_TO_TWO and row.at in told
        if row.rule not in NOTICES and not is_told:
            of_logs[row.rule.in_share_state].append(row)
    for in_share_state, rows in of_logs.items():
        kinds = ", ".join(f"{rule} {count}" for rule, count in Counter(row.rule for row in rows).most_common())
        at = [row.at for row in rows]
        yield history.finding(FindingKind.RULES_BROKEN, len(rows), kinds, at, in_share_state=in_share_state)


def wrong_targets(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for all targets that were judged divergent or invalid.

    Where some were not judged, and the topics do not reach to the end of the log, there may be more of them.
    """
    rows = [row for row in history.targets if row.verdict in WRONG]
    if rows:
        are_judged = all(row.verdict != Verdict.UNKNOWN for row in history.targets)
        epochs = first_of([f"{row.epoch} {row.verdict}" for row in rows])
        present = None if history.present is None else history.present.epoch
        yield history.finding(
            FindingKind.TARGETS_WRONG,
            len(rows),
            f"epochs {epochs}{_broken(rows[-1])}",
            [row.at for row in rows],
            is_open=any(row.epoch == present for row in rows),
            complete=are_judged or history.topics.reach.covers_end(history.now_ms),
        )


def _broken(row: TargetAuditRow) -> str:
    """What the last of them breaks, and what to do where its leader's client computes it so."""
    if row.verdict != Verdict.INVALID or not row.differences:
        return ""
    more = f" and {row.more_differences + len(row.differences) - 1} more" if (row.difference_count or 0) > 1 else ""
    text = f"{row.differences[0]}{more}"
    if row.fitted is None:
        return f"; epoch {row.epoch}: {text}"
    return f"; epoch {row.epoch}, as the client of its leader, {row.client}, assigns: {text}; {mixtures.SAME_TOPICS}"


FINDERS: tuple[Finder, ...] = (
    work_owners.two_owners,
    broken_rules,
    wrong_targets,
    rebalances.storms,
    rebalances.slow,
    rebalances.never_converges,
    membership.flapping,
    membership.rolling_deploys,
    membership.static_members,
    mixtures.not_taken,
    mixtures.left_out,
    mixtures.failed_generations,
    mixtures.cannot_work_together,
    connect.differing,
    group_settings.turned_off,
    group_settings.out_of_bounds,
    group_settings.full,
    balance.shares,
    work_owners.unassigned,
    work_owners.not_ready,
    balance.unassigned_work,
    balance.failed_assignors,
    committed_offsets.zombies,
    committed_offsets.rewound,
    resets.resets,
    resets.by_turns,
    committed_offsets.expired,
    committed_offsets.beyond_the_end,
    committed_offsets.floods,
    committed_offsets.open_transactions,
    broker_lines.decisions_not_kept,
    broker_lines.without_coordinator,
    broker_lines.conversions_refused,
    broker_lines.not_completed,
    record_faults.unloadable,
    record_faults.near_limit,
    streams.stuck_warmups,
    streams.half_updated_topology,
    streams.internal_topics_left,
    share.archived,
    share.unqueued,
    share.redelivered,
    share.stalled,
    share.initializing,
    share.orphaned,
)


def findings(history: GroupHistory, limits: Thresholds) -> list[FindingRow]:
    """Return all findings of a group, the most urgent first."""
    rows = [row for part in by_log(history) for finder in FINDERS for row in finder(part, limits)]
    return sorted((row for row in _told_once(rows) if row.kind not in limits.off), key=urgency)


def _told_once(rows: Sequence[FindingRow]) -> Iterator[FindingRow]:
    """Yield the findings of a group without those that are part of another one: a storm that one flapping client
    makes, and the clients that flap in any other storm.
    """
    flapping = [row for row in rows if row.kind == FindingKind.FLAPPING_MEMBER]
    storms = [row for row in rows if row.kind == FindingKind.REBALANCE_STORM]
    made = [storm for storm in storms if any(_is_within(flap, storm, flap.subject) for flap in flapping)]
    for row in rows:
        is_part = row in flapping and any(_is_within(row, storm) for storm in storms if storm not in made)
        if row not in made and not is_part:
            yield row


def _is_within(flap: FindingRow, storm: FindingRow, driver: str | None = None) -> bool:
    """Whether a client flapped in a storm; ``driver``: and whether the storm is this client's."""
    return flap.since_ms <= storm.until_ms and storm.since_ms <= flap.until_ms and driver in (None, storm.subject)


def findings_of_cluster(
    histories: Iterable[GroupHistory], limits: Thresholds, shows_all: ShowsAll
) -> Iterator[FindingRow]:
    """Yield the findings of all groups of a cluster, and those about the cluster itself.

    ``shows_all`` is called once all histories were read.
    """
    signs, of_groups, topics = list[ClusterSigns](), list[FindingRow](), NO_TOPICS
    for history in histories:
        of_groups += findings(history, limits)
        signs.append(ClusterSigns.of(history))
        topics = history.topics
    of_cluster, storms = about_cluster(ClusterSigns.of_all(signs), topics, of_groups, limits, shows_all)
    yield from marked(of_groups, storms)
    yield from of_cluster
