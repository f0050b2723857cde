"""Connect workers: those of one group that do not read the same config topic, and what a rolling restart says of the
scheduled rebalance delay.

An incremental assignor keeps in the memory of the worker that computes what is lost and until when it waits (KIP-415).
A worker that computes for the first time knows nothing of it, and hands the work of one that left to others at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.targets.classic_connect import EAGER
from coordinator_core.audit.targets.connect_groups import WITHOUT_MEMORY
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import READS_ANOTHER, CauseKind
from coordinator_core.history.rows import Cause, MembershipRow, RebalanceRow


def differing(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each worker that came back without what it was assigned, by its name."""
    causes: dict[str | None, list[Cause]] = defaultdict(list)
    for rebalance in history.rebalances:
        for cause in rebalance.causes:
            if cause.kind == CauseKind.CONFIGS_DIFFER:
                causes[history.client(cause.member_id)].append(cause)
    for name, seen in causes.items():
        if len(seen) >= limits.configs_differ_times:
            detail = f"{name} {READS_ANOTHER}: {len(seen)} times, at last: {seen[-1].detail}"
            at = [cause.at for cause in seen]
            yield history.finding(
                FindingKind.CONFIGS_DIFFER, len(seen), detail, at, threshold=limits.configs_differ_times, subject=name
            )


DELAY = "scheduled.rebalance.max.delay.ms"


class _NoDelay(NamedTuple):
    """A departure at which no work waited: the worker that left had computed before; ``computed``: who did then."""

    epoch: int
    left: str
    computed: str | None


def advice(history: GroupHistory, gone: Iterable[MembershipRow]) -> str:
    """Return what would have avoided moves while these workers were restarted, and where the log shows that it did not
    help.
    """
    gone = list(gone)
    if _is_eager(history):
        return (
            f"the eager assignor ({EAGER}) hands out all work in each rebalance: with compatible or sessioned, work of "
            f"a worker that returns within {DELAY} waits for it"
        )
    failed = [rebalance for row in gone for rebalance in _without_delay(history, row)]
    waits = f"a worker that returns within {DELAY} finds its work waiting"
    if not failed:
        return waits
    numbers = ", ".join(str(rebalance.epoch) for rebalance in failed)
    left = ", ".join(dict.fromkeys(rebalance.left for rebalance in failed))
    named = list(dict.fromkeys(rebalance.computed for rebalance in failed if rebalance.computed is not None))
    who = f"{', '.join(named)} computed" if named else "another worker, which the log does not name, computed"
    return (
        f"{waits}, unless it is the one that computes: at {numbers} that one left ({left}), {who} without its memory, "
        "and the delay did not apply"
    )


def _is_eager(history: GroupHistory) -> bool:
    names = {row.assignor for row in history.epochs} | {row.assignor for row in history.targets}
    return names - {None} == {EAGER}


def _without_delay(history: GroupHistory, gone: MembershipRow) -> Iterator[_NoDelay]:
    """Yield the departure if the worker that left had computed, and the next computation knew nothing of its work."""
    rebalance = _departure(history.rebalances, gone)
    if rebalance is None or rebalance.delay_ms:
        return
    name = history.client(gone.member_id) or gone.member_id
    if gone.group_type == GroupType.CONNECT:
        # The log does not name the worker that computes; that none of the former memories gives the target shows it.
        target = history.target_of(rebalance)
        if target is not None and target.fitted == WITHOUT_MEMORY:
            yield _NoDelay(rebalance.to_epoch, name, None)
        return
    before, after = history.epoch_ended_by(rebalance), history.epoch_of(rebalance)
    if before is not None and after is not None and before.leader == gone.member_id and after.leader is not None:
        yield _NoDelay(rebalance.to_epoch, name, history.client(after.leader) or after.leader)


def _departure(rebalances: Iterable[RebalanceRow], gone: MembershipRow) -> RebalanceRow | None:
    return next(
        (
            row
            for row in rebalances
            if any(cause.member_id == gone.member_id and cause.at == gone.left for cause in row.causes)
        ),
        None,
    )
