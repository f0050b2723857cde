"""Compares a recorded target with the recomputed one: the verdict, its figures, and the smallest readable
difference; and says what is missing from the log where nothing can be compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_core.assignors.assignment_metrics import measure
from coordinator_core.assignors.connect.work import CONNECTOR, ConnectorsAndTasks
from coordinator_core.assignors.inputs import Assignment, GroupSpecs, Tasks
from coordinator_core.audit.rows import Basis, TargetAuditRow, TargetFigures, Verdict
from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.records import LogPosition

MOST_DIFFERENCES = 10
"""A row names at most this many differences."""

Work = Any
"""The assignment of one member: ``Partitions``, ``Tasks``, or ``ConnectorsAndTasks``."""
EXCLUSIVE_ROLES = frozenset(("", "active", "connector", "task"))
"""Roles in which a unit belongs to one member only, except in share groups."""


class Judgement(NamedTuple):
    """The result of a comparison; ``difference_count`` is None if nothing could be compared.

    ``fitted`` says what was assumed where the verdict is ``identical``, ``missing`` what would decide where it is
    ``unknown``.
    """

    verdict: Verdict
    differences: tuple[str, ...] = ()
    difference_count: int | None = 0
    expected: TargetFigures | None = None
    recorded: TargetFigures | None = None
    fitted: str | None = None
    missing: str | None = None


def undecided(missing: str) -> Judgement:
    """Return the result if an input is missing: it states no difference and no figure."""
    return Judgement(Verdict.UNKNOWN, difference_count=None, missing=missing)


def identical(fitted: str | None = None, figures: TargetFigures | None = None) -> Judgement:
    """Return the result of two that are the same, and have the same figures."""
    return Judgement(Verdict.IDENTICAL, expected=figures, recorded=figures, fitted=fitted)


def differing(verdict: Verdict, found: Sequence[str]) -> Judgement:
    """Return the result of two that differ, without figures; ``found`` are the differences, in words."""
    return Judgement(verdict, tuple(found[:MOST_DIFFERENCES]), len(found))


def verdict_row(
    group_id: str, group_type: GroupType, epoch: int, at: LogPosition, judged: Judgement, basis: Basis
) -> TargetAuditRow:
    """Return a verdict on the target that the record at ``at`` completes, without what it was computed with."""
    row = TargetAuditRow(group_id, group_type, epoch, at, at, judged.verdict, basis)
    return row._replace(**judged._asdict())


def units(work: Work) -> Iterator[WorkUnit]:
    """Yield every partition, task or connector of one member's assignment."""
    if isinstance(work, ConnectorsAndTasks):
        for connector in work.connectors:
            yield WorkUnit("connector", connector, CONNECTOR)
        for connector, number in work.tasks:
            yield WorkUnit("task", connector, number)
    elif isinstance(work, Tasks):
        for role, tasks in (("active", work.active), ("standby", work.standby), ("warm-up", work.warmup)):
            for name, numbers in tasks.items():
                for number in numbers:
                    yield WorkUnit(role, name, number)
    else:
        for name, numbers in work.items():
            for number in numbers:
                yield WorkUnit("", name, number)


def gives_twice(given: Mapping[str, Work]) -> bool:
    """Whether a partition, task or connector is given twice, to whomever."""
    every = [unit for work in given.values() for unit in units(work)]
    return len(every) > len(set(every))


def count_units(work: Work) -> int:
    """Return the number of partitions, tasks and connectors of one member's assignment."""
    if isinstance(work, ConnectorsAndTasks):
        return len(work.connectors) + len(work.tasks)
    if isinstance(work, Tasks):
        return sum(count_units(role) for role in (work.active, work.standby, work.warmup))
    return sum(map(len, work.values()))


def judge(
    spec: GroupSpecs,
    image: TopicImage,
    expected: Mapping[str, Work],
    recorded: Mapping[str, Work],
    broken: Sequence[str],
    name_of: Callable[[str], str],
    *,
    has_one_result: bool = False,
    withheld: frozenset[WorkUnit] = frozenset(),
) -> Judgement:
    """Compare two complete assignments whose records differ.

    ``broken`` names the invariants that the recorded one breaks. Equivalent assignments give away the same partitions;
    nothing is equivalent to the one result that the assignor can have (``has_one_result``). ``withheld`` may be given
    to nobody for now (KIP-429).
    """
    figures = [figures_of(spec, image, members) for members in (expected, recorded)]
    different = list(differences(expected, recorded, name_of))
    # A broken rule is wrong whichever result the assignor may have had; figures decide only among what is allowed.
    if broken:
        verdict = Verdict.INVALID
    elif different and has_one_result:
        verdict = Verdict.DIVERGENT
    elif not different or (
        figures[0] == figures[1] and not (_holders(expected).keys() ^ _holders(recorded).keys()) - withheld
    ):
        verdict = Verdict.EQUIVALENT
    else:
        verdict = Verdict.DIVERGENT
    return differing(verdict, [*broken, *different])._replace(expected=figures[0], recorded=figures[1])


def figures_of(spec: GroupSpecs, image: TopicImage, members: Mapping[str, Work]) -> TargetFigures:
    """Return the figures of one assignment."""
    measured = measure(spec, image, Assignment(members))
    return TargetFigures(measured.imbalance, measured.moved, measured.kept, measured.rack_misses)


def differences(
    expected: Mapping[str, Work], recorded: Mapping[str, Work], name_of: Callable[[str], str]
) -> Iterator[str]:
    """Yield each partition or task whose members differ, such as ``p3 of orders: m1 expected, m2 recorded``."""
    expected_holders, recorded_holders = _holders(expected), _holders(recorded)
    for unit in sorted(expected_holders.keys() | recorded_holders.keys()):
        wanted, logged = expected_holders.get(unit), recorded_holders.get(unit)
        if (wanted or set()) != (logged or set()):
            yield f"{described(unit, name_of)}: {_named(wanted)} expected, {_named(logged)} recorded"


def described(unit: WorkUnit, name_of: Callable[[str], str]) -> str:
    """Return a partition, task or connector in words."""
    if unit.role == "connector":
        return f"connector {unit.name}"
    if unit.role == "task":
        return f"task {unit.name}-{unit.number}"
    if unit.role:
        return f"{unit.role} task {unit.name}_{unit.number}"
    return f"p{unit.number} of {name_of(unit.name)}"


def broken_invariants(
    members: Iterable[str],
    recorded: Mapping[str, Work],
    wanted: Mapping[str, set[WorkUnit]],
    *,
    shared: bool,
    name_of: Callable[[str], str],
    unwanted: str = "which may not have it",
) -> list[str]:
    """Return, in words, the invariants of every assignor that the recorded assignment breaks.

    ``wanted`` has, by member, the partitions that it may get (streams: every task, for every member). ``shared``:
    several members may have one partition (share groups). ``unwanted`` is said of a member that may not have one.
    """
    known = set(members)
    broken = []
    holders: dict[WorkUnit, str] = {}
    for member, work in recorded.items():
        seen: set[WorkUnit] = set()
        for unit in units(work):
            named = described(unit, name_of)
            if member not in known:
                broken.append(f"{named}: given to {member}, which is not a member")
            elif unit not in wanted.get(member, ()):
                broken.append(f"{named}: given to {member}, {unwanted}")
            if unit in seen:
                broken.append(f"{named}: given to {member} twice")
            elif not shared and unit.role in EXCLUSIVE_ROLES and unit in holders:
                broken.append(f"{named}: given to {holders[unit]} and to {member}")
            seen.add(unit)
            holders.setdefault(unit, member)
    return broken


def _holders(assignment: Mapping[str, Work]) -> dict[WorkUnit, set[str]]:
    holders: dict[WorkUnit, set[str]] = {}
    for member, work in assignment.items():
        for unit in units(work):
            holders.setdefault(unit, set()).add(member)
    return holders


def _named(members: set[str] | None) -> str:
    return " and ".join(sorted(members)) if members else "no member"


WHERE_TOPICS_ARE: Final = (
    "supply the cluster metadata log, or where there is none (ZooKeeper) snapshots of the cluster (command snapshot), "
    "or brokers' logs (--broker-log)"
)
TOPICS_MISSING: Final = f"topics of that time: {WHERE_TOPICS_ARE}"


class GroupGap(NamedTuple):
    """Records of the group that may be missing before the one that is judged; ``missing`` names them.

    ``unbroken_from`` is the first of the offsets that continue without a hole up to that record; None: not known.
    """

    missing: str
    unbroken_from: int | None

    def is_after(self, offset: int | None) -> bool:
        """Whether records may be missing between ``offset`` (None: not known) and the record that is judged."""
        return offset is None or self.unbroken_from is None or max(offset, 0) < self.unbroken_from
