"""Deliveries of share partitions: the text sums rows up as the core's fold does, on both engines."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.share_deliveries import ShareDelivery, share_deliveries
from coordinator_core.history.rows import OffsetRange, SharePartitionRow, ShareWrite, StateCount
from coordinator_core.records import LogPosition
from jobs.relations import deliveries
from jobs.relations.groups import SUMS, given, rows_of
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import HISTORY
from jobs.tables.reader import TableReader
from tests.jobs.relations.engines import through_spark, write

CLUSTER = "c"
MOST = 4
"""Ranges that are kept of each share partition in these tests."""


def ranges(rng: random.Random) -> tuple[OffsetRange, ...]:
    """Ranges of one write, in the order of their offsets; a broken record has swapped bounds."""
    firsts = sorted(rng.sample(range(0, 100, 10), rng.choice((0, 0, 1, 2))))
    return tuple(OffsetRange(first, first + rng.randrange(-3, 5), rng.randrange(1, 6)) for first in firsts)


def rows(seed: int) -> list[SharePartitionRow]:
    """Share partitions over time; some were deleted, and began again."""
    rng = random.Random(seed)
    made = []
    for group_id in ("g", "h"):
        for topic_id, partition in (("t1", 0), ("t1", 1), ("t2", 0)):
            offsets = sorted(rng.sample(range(1, 200), rng.randrange(1, 12)))
            for offset in offsets:
                at = LogPosition(3, offset, 1_000 + rng.randrange(500))
                is_open = offset == offsets[-1] and rng.random() < 0.7
                counts = tuple(StateCount("archived", rng.randrange(1, 9), 2) for _ in range(rng.randrange(3)))
                row = {
                    **dict.fromkeys(SharePartitionRow._fields),
                    **{"group_id": group_id, "topic_id": topic_id, "partition": partition},
                    **{"since": at, "advanced": at, "next_offset_shown": at},
                    **{"topic": rng.choice(("orders", None)), "is_open": is_open, "counts": counts},
                    **{
                        "until": None if is_open else at,
                        "write": str(rng.choice([*ShareWrite, *[ShareWrite.DELIVERY] * 20])),
                        "snapshot_epoch": 1,
                    },
                    **{"leader_epoch": 2, "accepted_now": rng.randrange(5), "redelivered_now": rng.choice((0, 0, 3))},
                    **{
                        "released_now": ranges(rng),
                        "archived_now": ranges(rng),
                        "archiving_now": tuple(
                            span._replace(first=span.first + 5, last=span.last + 5) for span in ranges(rng)
                        ),
                        "unqueued_now": (unqueued := ranges(rng)),
                        "unqueued_why": rng.choice(("no topic", "not enabled")) if unqueued else None,
                        "delivery_limit": rng.choice((None, 5)),
                    },
                    "history_complete": True,
                }
                made.append(SharePartitionRow(**row))
    rng.shuffle(made)
    return made


def expected(made: list[SharePartitionRow]) -> list[tuple[str, ShareDelivery]]:
    groups = sorted({row.group_id for row in made})
    return [
        (name, delivery._replace(given_up=delivery.given_up[-MOST:]))
        for name in groups
        for delivery in share_deliveries(row for row in made if row.group_id == name)
    ]


def found(tables: TableReader, text: str) -> list[tuple[str, ShareDelivery]]:
    some = text.replace(f"nth <= {deliveries.MOST_GIVEN_UP}", f"nth <= {MOST}")
    assert some != text
    of_groups = rows_of(tables, SUMS["deliveries"]._replace(text=some), **given(CLUSTER))
    return sorted(of_groups, key=lambda each: (each[0], each[1].topic_id, each[1].partition))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, list[SharePartitionRow]]]:
    return [*_homes(tmp_path_factory)]


def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[SharePartitionRow]]]:
    for seed in range(5):
        made, home = rows(seed), tmp_path_factory.mktemp("shares")
        of_other = [{"cluster": "other", **row._asdict()} for row in made[:9]]
        write(home, {HISTORY["share_partitions"]: [{"cluster": CLUSTER, **row._asdict()} for row in made] + of_other})
        yield home, made


def test_sums_are_those_of_the_fold(homes: list[tuple[Path, list[SharePartitionRow]]]) -> None:
    for home, made in homes:
        assert found(FolderReader(str(home)), deliveries.DELIVERIES) == expected(made)


def test_spark_sums_the_same(homes: list[tuple[Path, list[SharePartitionRow]]], spark: SparkSession) -> None:
    home, made = homes[0]
    assert found(through_spark(spark, home), deliveries.DELIVERIES) == expected(made)


MUTATIONS = [
    ("WHERE cluster = :cluster AND", "WHERE"),
    ("greatest(0, p.part.last", "greatest(-9, p.part.last"),
    ("p.part.first + 1)", "p.part.first)"),
    ("UNION ALL SELECT", "EXCEPT SELECT"),
    ("sum(accepted_now)", "max(accepted_now)"),
    ("sum(redelivered_now)", "max(redelivered_now)"),
    ("redelivered_now > 0", "redelivered_now >= 0"),
    ("s.first_redelivery.since AS", "s.last_redelivery.since AS"),
    ("s.last_redelivery.since AS", "s.first_redelivery.since AS"),
    ("max(CASE WHEN write IN", "min(CASE WHEN write IN"),
    ("min(CASE WHEN TRUE", "max(CASE WHEN TRUE"),
    (f"'{ShareWrite.ALTERED}', ", ""),
    ("CASE WHEN kind IN ('archived', 'archiving') THEN records", "CASE WHEN kind = 'archived' THEN records"),
    ("CASE WHEN kind <> 'unqueued' THEN records ELSE 0", "CASE WHEN TRUE THEN records ELSE 0"),
    ("CASE WHEN kind = 'unqueued' THEN records", "CASE WHEN kind = 'released' THEN records"),
    ("FROM parts AS p WHERE kind IN ('archived', 'archiving')", "FROM parts AS p"),
    ("'dead_letter', kind = 'archiving'", "'dead_letter', TRUE"),
    ("s.first_unqueued.since AS", "s.last_unqueued.since AS"),
    ("s.last_unqueued.since AS", "s.first_unqueued.since AS"),
    ("'unqueued_why', unqueued_why", "'unqueued_why', write"),
    ("ORDER BY log_offset DESC, p.part", "ORDER BY log_offset, p.part"),
    ("p.part.first DESC", "p.part.first"),
    ("ORDER BY log_offset DESC) AS nth", "ORDER BY log_offset) AS nth"),
    ("max(c.held.delivery_count)", "min(c.held.delivery_count)"),
    ("CASE WHEN n.is_open THEN", "CASE WHEN TRUE THEN"),
    ("LEFT JOIN ended", "JOIN ended"),
    ("LEFT JOIN latest", "JOIN latest"),
    ("LEFT JOIN counted", "JOIN counted"),
    ("s.group_id = n.group_id AND", ""),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[part for part, _ in MUTATIONS])
def test_a_mutated_text_is_found(homes: list[tuple[Path, list[SharePartitionRow]]], part: str, instead: str) -> None:
    """Each part of the text matters to some rows."""
    assert part in deliveries.DELIVERIES
    mutated = deliveries.DELIVERIES.replace(part, instead)
    assert any(found(FolderReader(str(home)), mutated) != expected(made) for home, made in homes)
