"""Two jobs that commit for one group id by turns, without joining it: Flink, Beam and MirrorMaker do so.

Each writes offsets that go up, and the commits of one are below those of the other: the committed offset jumps back and
forth. No administrator resets offsets so: what is set back each time goes up, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commit_rows import PartitionCommits, Rewind
from coordinator_core.audit.folds.commits import MOST_KEPT
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of

MORE_REWINDS: Final[Callable[[PartitionCommits], int]] = attrgetter("more_rewinds")
OF_TURNS: Final = 0.9
"""In this part of the turns both offsets have gone up since the turn before; a job may be restarted in between."""


def is_by_turns(commits: PartitionCommits, limits: Thresholds) -> bool:
    """Whether the commits of a partition are those of two writers that take turns."""
    if len(commits.rewinds) < limits.commit_turns:
        return False
    steps = list(pairwise(commits.rewinds))
    return sum(map(_goes_up, steps)) >= OF_TURNS * len(steps)


def _goes_up(step: tuple[Rewind, Rewind]) -> bool:
    one, other = step
    return other.before > one.before and other.after > one.after


def cut_text(commits: Iterable[PartitionCommits], more_of: Callable[[PartitionCommits], int]) -> str:
    """Return the words for what is not kept of partitions, of which each has ``more_of``; empty: all is kept."""
    more = [count for each in dict.fromkeys(commits) if (count := more_of(each))]
    if not more:
        return ""
    return f"; the first {MOST_KEPT} of a partition are kept: {counted(len(more), 'partition')} had {sum(more)} more"


def by_turns(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for all partitions that two writers commit by turns."""
    taken = [commits for commits in history.commits if is_by_turns(commits, limits)]
    if not taken:
        return
    turns = [rewind for commits in taken for rewind in commits.rewinds]
    first = taken[0]
    names = first_of([f"{commits.topic}-{commits.partition}" for commits in taken], 3)
    apart = sorted(rewind.before - rewind.after for rewind in turns)[len(turns) // 2]
    more = sum(map(MORE_REWINDS, taken))
    yield history.finding(
        FindingKind.COMMITS_BY_TURNS,
        len(turns) + more,
        f"two jobs commit for this group by turns: {counted(len(taken), 'partition')} ({names}) went back "
        f"{len(turns) + more} times and forth again, by {apart} offsets mostly, the first of "
        f"{first.topic}-{first.partition} from {first.rewinds[0].before} to {first.rewinds[0].after}"
        f"{cut_text(taken, MORE_REWINDS)}; each overwrites what the other has committed, and reads on from there once "
        "it starts again",
        [rewind.at for rewind in turns],
        threshold=limits.commit_turns,
        subject=first.topic if len({commits.topic for commits in taken}) == 1 else None,
        # What came after the last one that is kept was written as before.
        until_ms=max(commits.last.timestamp_ms for commits in taken) if more else None,
    )
