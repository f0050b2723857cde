"""Sessions that many members lost together: the tables give the finding of the cluster that histories give."""

import random
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings_of_cluster
from coordinator_core.audit.findings.coordinator_away import lost_members
from coordinator_core.audit.findings.many_groups import group_stays, stood_still
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.memberships import COORDINATOR_AWAY
from coordinator_core.history.rows import MembershipRow
from jobs.relations.sessions import LOST_AWAY, RETURNED, STAYS, stored_lost_members, stored_lost_sessions, stored_stays
from jobs.settings import load
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import HISTORY
from tests.core.audit.histories import all_shown, at, member
from tests.jobs.relations.engines import of_both, write

LIMITS = load(environment={}).findings
MEMBERSHIPS = HISTORY["memberships"]
GONE = ("leave or expiry", "expiry", "static replacement", None)


def memberships(seed: int) -> list[MembershipRow]:
    """Members of four groups that come and go, many of them in the same seconds, some under their former ids."""
    choose = random.Random(seed)
    rows, offset = [], 0
    for group in "abcd":
        for number in range(6):
            name, time_ms = f"m{number}", 1_000
            for _ in range(choose.randint(1, 4)):
                joined = at(offset := offset + 1, time_ms)
                left_ms = choose.choice((50_000, 90_000)) + choose.randint(0, 700) + time_ms // 100_000 * 100_000
                how = choose.choices(GONE, (6, 2, 1, 1))[0]
                left = None if how is None else at(offset := offset + 1, left_ms)
                host = choose.choice(("/10.0.0.1", "/10.0.0.2", None))
                hint = choose.choices((None, "left: it committed 9 ms before", "silent: its last commit"), (6, 1, 3))[0]
                more = {"went_by": how, "client_host": host, "hint": hint}
                rows.append(member(name, joined, left, group_id=group, **more))
                if left is None:
                    break
                time_ms = left_ms + choose.choice((300, 5_000, 100_000))
                name = name if choose.random() < 0.8 else f"{name}x"
    return rows


def of_histories(rows: list[MembershipRow]) -> list[FindingRow]:
    by_group = groupby(rows, attrgetter("group_id"))
    histories = [GroupHistory(name, 10_000_000, memberships=list(of_group)) for name, of_group in by_group]
    return [row for row in findings_of_cluster(histories, LIMITS, all_shown) if row.kind == FindingKind.STOOD_STILL]


def stored(home: Path, rows: list[MembershipRow]) -> None:
    """In any order, beside those of another cluster."""
    shuffled = random.Random(0).sample(rows, len(rows))
    here = [{**row._asdict(), "cluster": "c"} for row in shuffled]
    write(home, {MEMBERSHIPS: [*here, *({**row, "cluster": "other"} for row in here)]})


@pytest.mark.parametrize("seed", range(6))
def test_tables_and_histories_find_the_same(seed: int, tmp_path: Path) -> None:
    rows = memberships(seed)
    stored(tmp_path, rows)
    found = list(stood_still(stored_lost_sessions(FolderReader(str(tmp_path)), "c"), LIMITS))
    assert found == of_histories(rows)
    assert found


@pytest.mark.parametrize("seed", range(2))
def test_both_engines_know_the_same_sessions(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    stored(tmp_path, memberships(seed))
    assert of_both(spark, tmp_path, RETURNED, cluster="c", gone=["leave or expiry"])


def test_tables_and_histories_know_the_same_members_that_an_absence_cost(tmp_path: Path, spark: SparkSession) -> None:
    away = [row._replace(hint=f"{COORDINATOR_AWAY} for 9 s") for row in memberships(1)]
    rows = [one if number % 3 else other for number, (one, other) in enumerate(zip(memberships(1), away, strict=True))]
    stored(tmp_path, rows)
    by_group = groupby(rows, attrgetter("group_id"))
    histories = [GroupHistory(name, 10_000_000, memberships=list(of_group)) for name, of_group in by_group]
    found = list(stored_lost_members(FolderReader(str(tmp_path)), "c"))
    assert found == sorted(lost for history in histories for lost in lost_members(history))
    assert found
    assert of_both(spark, tmp_path, LOST_AWAY, cluster="c")


def test_tables_and_histories_know_the_same_groups_without_members(tmp_path: Path, spark: SparkSession) -> None:
    rows = [
        row._replace(group_id=f"{row.group_id}{seed}")
        for seed in range(6)
        for row in memberships(seed)
        if row.left or seed < 3
    ]
    rows.sort(key=attrgetter("group_id"))
    stored(tmp_path, rows)
    by_group = groupby(rows, attrgetter("group_id"))
    histories = [GroupHistory(name, 10_000_000, memberships=list(of_group)) for name, of_group in by_group]
    found = list(stored_stays(FolderReader(str(tmp_path)), "c"))
    assert found == sorted(stay for history in histories for stay in group_stays(history))
    assert 0 < len(found) < len(histories)
    assert of_both(spark, tmp_path, STAYS, cluster="c")
