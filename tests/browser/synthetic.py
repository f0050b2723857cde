"""A report of a large cluster, from hand-built rows of history."""

from __future__ import annotations

from coordinator_core.audit.findings.group_history import GroupHistory
from jobs.report.build import ReportHeader, build
from jobs.report.data import Report
from jobs.settings import load
from tests.core.history.logs import GroupLog, current, epoch, gone, member, target, target_epoch


def large_report(groups: int, rebalances: int) -> Report:
    """So many groups, and so many rebalances in all."""
    each = rebalances // groups
    histories = (_history(f"team-{number % 17}.service-{number}", each, number) for number in range(groups))
    return build(histories, load().findings, ReportHeader("large", "test", 0, (), True, []))


def _history(group_id: str, rebalances: int, number: int) -> GroupHistory:
    log = GroupLog(time_ms=1_700_000_000_000 + number * 37_000)
    for each in range(rebalances):
        joined = f"member-{number}-{each}"
        log.write(
            member(joined, "t"),
            epoch(each + 1),
            target(joined, *range(each + 1)),
            target_epoch(each + 1),
            after_ms=9000,
        )
        log.write(current(joined, each + 1, *range(each + 1)), after_ms=700)
        if each % 3 == 2:
            log.write(*gone(joined), after_ms=1)
    rows = [row._replace(group_id=group_id) for row in log.rows()]
    return GroupHistory(
        group_id,
        log.time_ms,
        **{
            name: [row for row in rows if type(row).__name__ == kind]
            for name, kind in {
                "epochs": "GroupEpochRow",
                "rebalances": "RebalanceRow",
                "memberships": "MembershipRow",
                "assignments": "AssignmentRow",
            }.items()
        },
    )
