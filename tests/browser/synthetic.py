"""A report of a large cluster, from hand-built rows of history."""

from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.report.build import ReportHeader, build
from jobs.report.data import Report
from jobs.settings import load
from tests.core.audit.histories import all_shown
from tests.core.history.logs import GroupLog, current, epoch, gone, member, target, target_epoch


def large_report(groups: int, rebalances: int) -> Report:
    """So many groups, and so many rebalances in all."""
    each = rebalances // groups
    histories = (_history(f"team-{number % 17}.service-{number}", each, number) for number in range(groups))
    return build(histories, load().findings, ReportHeader("large", "test", 0, (), True, []), all_shown)


def report_of_a_large_group(members: int, partitions: int) -> Report:
    """A report of the group ``large``: a member goes and comes back again and again."""
    log = GroupLog(time_ms=1_700_000_000_000)
    held = {number: range(number, partitions, members) for number in range(members)}
    for number in held:
        log.write(member(f"m{number}", "t"))
    log.write(epoch(1))
    for number, units in held.items():
        log.write(target(f"m{number}", *units))
    log.write(target_epoch(1))
    for number, units in held.items():
        log.write(current(f"m{number}", 1, *units), after_ms=3)
    for step in range(2, 12):
        log.write(*gone(f"m{step}"), epoch(step), after_ms=5000)
        heir = f"m{members - step}"
        units = (*held[members - step], *held[step])
        log.write(target(heir, *units), target_epoch(step), after_ms=900)
        log.write(current(heir, step, *units), after_ms=400)
    return build(
        [_as_history("large", log)], load().findings, ReportHeader("large", "test", 0, (), True, []), all_shown
    )


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
    return _as_history(group_id, log)


def _as_history(group_id: str, log: GroupLog) -> GroupHistory:
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
