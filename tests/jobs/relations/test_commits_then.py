"""Commits at the end of random logs: the summaries say what all commits say, and each part of both texts matters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from coordinator_core.groups.certainty import LogGaps
from jobs.queries.from_tables.commits import (
    CommitsThen,
    GroupKey,
    SummarizedCommits,
    commits_then,
    order_of_groups,
    read_offsets,
    read_records,
)
from jobs.queries.from_tables.selection import Selection
from jobs.relations.log_extent import Extents, StoredLogExtent, extents_at
from jobs.relations.moment import AsOf
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from tests.jobs.relations.random_commits import write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, fill


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[FolderReader]:
    """Tables of short logs, in which much is open, or was removed last."""
    found = []
    for seed in range(6):
        place = tmp_path_factory.mktemp("commits")
        write_logs(place / "logs", seed, batches=14)
        fill(place / "tables", place / "logs")
        found.append(FolderReader(str(place / "tables")))
    return found


@dataclass(frozen=True, slots=True)
class Mutated(Selection):
    """A selection that changes a part of each text."""

    part: str = ""
    instead: str = ""

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
        return Selection.rows(self, sql.replace(self.part, self.instead) if self.part else sql, **values)


GAPS = [LogGaps(), LogGaps(missing=20, lost=10), LogGaps(missing=20)]


def extents(first: int) -> Extents:
    """Log partitions at their end, as if each lacked something else."""
    return {(GROUP_LOG, number): StoredLogExtent(gaps=GAPS[(first + number) % 3]) for number in range(3)}


def said(of: type[CommitsThen], selected: Selection, of_logs: Extents) -> list[tuple[GroupKey, Any]]:
    return [
        (key, (each.last, read_offsets(each.held), read_records(each.about)))
        for key, each in of(selected, of_logs).groups()
    ]


def test_summaries_say_what_all_commits_say(stores: list[FolderReader]) -> None:
    everything = []
    for number, tables in enumerate(stores):
        selected = Mutated(tables, CLUSTER, [GROUP_LOG])
        summarized = said(SummarizedCommits, selected, extents(number))
        assert summarized == said(CommitsThen, selected, extents(number))
        assert [key for key, _ in summarized] == sorted((key for key, _ in summarized), key=order_of_groups)
        everything += summarized
    assert any(about for _, (_, _, about) in everything)
    assert any(held.pending for _, (_, held, _) in everything)


def test_the_end_of_the_log_is_read_from_summaries(stores: list[FolderReader]) -> None:
    tables, texts = stores[0], list[str]()

    class Noted(Mutated):
        def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
            texts.append(sql)
            return super().rows(sql, **values)

    selected = Noted(tables, CLUSTER, [GROUP_LOG])
    for moment, table in ((AsOf(), "$commit_summaries"), (AsOf(offsets={0: 5}), "$offset_commits")):
        texts.clear()
        list(commits_then(selected, extents_at(tables, CLUSTER, moment, [GROUP_LOG])))
        assert all(table in text for text in texts)


MUTATIONS = [
    (SummarizedCommits, "s.last.offset AS log_offset", "0 AS log_offset"),
    (SummarizedCommits, "ended AS log_offset", "0 AS log_offset"),
    (SummarizedCommits, "AND group_id IN :uncounted AND NOT is_tombstone", "AND group_id IN :uncounted"),
    (SummarizedCommits, "each_of(pending) AS pending_commit", "committed AS pending_commit"),
    (CommitsThen, "d.log_offset = c.log_offset", "TRUE"),
    (CommitsThen, "max(CASE WHEN NOT is_tombstone AND", "min(CASE WHEN NOT is_tombstone AND"),
    (CommitsThen, "committed > coalesce(ended, -1)", "TRUE"),
    (CommitsThen, "o.log_offset > coalesce(l.ended, -1)", "TRUE"),
    (CommitsThen, "producer_id, max(log_offset) AS log_offset", "producer_id, min(log_offset) AS log_offset"),
    (CommitsThen, "opened > ended THEN opened", "TRUE THEN opened"),
    (CommitsThen, "max(log_offset) AS log_offset FROM written", "min(log_offset) AS log_offset FROM written"),
]


@pytest.mark.parametrize(("of", "part", "instead"), MUTATIONS, ids=[part for _, part, _ in MUTATIONS])
def test_a_mutated_text_is_found(stores: list[FolderReader], of: type[CommitsThen], part: str, instead: str) -> None:
    """Each part of the texts matters to some commits."""
    assert any(
        said(of, Mutated(tables, CLUSTER, [GROUP_LOG], None, part, instead), extents(number))
        != said(of, Selection(tables, CLUSTER, [GROUP_LOG]), extents(number))
        for number, tables in enumerate(stores)
    )
