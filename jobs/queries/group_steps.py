"""The steps of the committed offsets of a group, the same from log files and from tables."""

from __future__ import annotations

from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.offsets.steps import CommitStep, commit_steps
from jobs.queries.interface import Answers
from jobs.queries.ownership import owned_by
from jobs.relations.moment import AsOf


class GroupSteps(NamedTuple):
    """``left_out``: number of commits of transactions that are open, or whose end is lost."""

    rows: list[CommitStep]
    left_out: int


def group_steps(answers: Answers, history: GroupHistory) -> GroupSteps:
    """Return the steps of every partition of a group, by topic and partition, each in the order of the log."""
    commits = answers.commits(history.group_id)
    readers: dict[str, frozenset[str]] = {}
    if any(row.subtopology is not None for row in history.assignments):
        groups = [then.group for then in answers.at(AsOf(), history.group_id).groups()]
        for topic in {run.partition.topic for run in commits.runs}:
            readers[topic] = owned_by(topic, groups).subtopologies.get(history.group_id, frozenset())
    return GroupSteps(commit_steps(history, commits, readers), commits.left_out)
