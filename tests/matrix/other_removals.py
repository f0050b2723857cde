"""More that logs lack or mix up: another cluster, clocks apart, dumps of other forms, parts that come a night later."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.jobs.filled_tables import Rows, kafka_rows, sample_rows, write_json, write_parquet
from tests.jobs.queries.unreadable_logs import rewritten
from tests.matrix.pairs import pairs
from tests.matrix.removals import (
    ABSENT,
    GAPS,
    METADATA,
    SHARE,
    TOPIC,
    TOPICS,
    Removal,
    removals,
    without_partition,
    without_segment,
    without_share,
    without_topic,
)
from tests.shared_data import ROOT

WORKERS = "__worker_offsets"
OTHER_CLUSTER = ROOT / "data" / "samples" / "incident"
OTHER = "another log|another cluster|not of the same log"
NEAR_MS = (-300, -20, 20, 300)
FAR_MS = (-10_000, -2_000, 2_000, 10_000)
"""Within the tolerance of clocks, and further apart than topics and generations are."""
OF_TIMES = (
    r"(topics_at|causes\[\d+\]\.at|evidence\[\d+\])\.timestamp_ms|fitted|causes\[\d+\]\.hint|delayed_by|broker_away"
)
"""Fields with a time of the metadata log, or with what happened about the same time."""
BY_TIMES = rf"{OF_TIMES}|topics_at.*|topics_proven"
"""Fields that were found by a time."""
TIMES = r".*_ms(\[\d+\])?|.*since|.*until|.*time|.*per_second|.*hint"
"""Fields with a time, a duration or a rate."""
OF_TOPICS = rf"{OF_TIMES}|topics_at\.offset|detail"


def metadata_of_other_cluster(folder: Path) -> None:
    shutil.rmtree(folder / METADATA)
    shutil.copytree(OTHER_CLUSTER / METADATA, folder / METADATA)


def with_other_cluster(folder: Path) -> None:
    """The logs of two clusters lie in one folder, each in a folder of its own."""
    shutil.copytree(OTHER_CLUSTER, folder / "z-other")


def _nothing(folder: Path) -> None:
    """Leave the logs as they are."""


def clock_of_metadata(shift_ms: int) -> Callable[[Path], None]:
    return lambda folder: _shift(folder / METADATA, shift_ms)


def _shift(partition: Path, shift_ms: int) -> None:
    for file in partition.glob("*.log"):
        rewritten(file, lambda record: record._replace(timestamp=record.timestamp + shift_ms), 1)


def dump(write: Callable[[Path, Rows], Path], *without: str) -> Callable[[Path], list[Path]]:
    """What a consumer reads of the logs of groups, workers and share state, without these columns; it sees no markers.

    The metadata log is there as it is.
    """

    def change(folder: Path) -> list[Path]:
        given = [folder.parent / "metadata"]
        shutil.copytree(folder / METADATA, given[0] / METADATA)
        for topic in (name for name in (TOPIC, WORKERS, SHARE) if any(folder.glob(f"{name}-*"))):
            rows = [
                {name: value for name, value in row.items() if name not in without}
                for row in kafka_rows(sample_rows(topic, folder))
            ]
            if rows:  # a consumer writes no file of a topic in which it sees nothing
                given.append(write(folder.parent / f"dump-{topic}", rows))
        return given

    return change


def json_lines(place: Path, rows: Rows) -> Path:
    place.mkdir()
    write_json(place / "dump.jsonl.gz", rows)
    return place


def next_night(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """The first night has the logs without some files, the next one has those files."""

    def changed(folder: Path) -> None:
        later = tomorrow(folder)
        shutil.copytree(folder, later)
        change(folder)
        for file in [*later.rglob("*.log")]:
            if (folder / file.relative_to(later)).exists():
                file.unlink()

    return changed


def tomorrow(folder: Path) -> Path:
    """Where the logs of the next night lie."""
    return folder.parent / "tomorrow" / folder.name


def of_other_cluster() -> dict[str, Removal]:
    """Logs of another cluster."""
    return {
        "metadata of the incident's cluster": Removal(metadata_of_other_cluster, TOPICS, (), True),
        "two clusters in one folder": Removal(with_other_cluster, OTHER, (), True),
    }


def of_clocks() -> dict[str, Removal]:
    """The clocks of the controller and of the coordinator go apart."""
    # Sentences of ``explain`` have times between records of both logs, such as the start of a broker before.
    near = Removal(_nothing, TOPICS, (), True, changes=OF_TIMES, questions="^(?!explain)")
    far = Removal(_nothing, TOPICS, (), True, changes=OF_TOPICS, questions="^(audit|findings|groups|offsets)")
    shifts = dict.fromkeys(NEAR_MS, near) | dict.fromkeys(FAR_MS, far)
    # The samples have topics that are created 250 ms before a classic group uses them, and others that come while
    # it does: no record says which of them it knew.
    for shift_ms in (-300, 300):
        shifts[shift_ms] = replace(near, changes=OF_TOPICS, questions="^(?!whatif|explain)", moves_topics_ms=300)
    return {
        f"clock of metadata {shift_ms:+} ms": replace(each, change=clock_of_metadata(shift_ms), clock_ms=shift_ms)
        for shift_ms, each in shifts.items()
    }


def of_nights(partitions: Iterable[int], *, has_share: bool) -> dict[str, Removal]:
    """A part of the logs comes a night later; after that night nothing is missing."""
    changes: dict[str, Callable[[Path], None]] = {"metadata": without_topic("__cluster_metadata")}
    for number in partitions:
        changes[f"partition {number}"] = without_partition(number)
        changes[f"first segment of {number}"] = without_segment(0, number)
        changes[f"middle segment of {number}"] = without_segment(2, number)
    if has_share:
        changes |= {"share state": without_topic(SHARE), "share state 1": without_share(1)}
    return {f"{name} comes a night later": Removal(next_night(each), nights=2) for name, each in changes.items()}


def of_dumps(partitions: Iterable[int]) -> dict[str, Removal]:
    """Dumps by a consumer, which only tables take."""
    # A consumer sees no record of an empty partition, and no markers: several in a row leave a gap as lost records do.
    touched, lost = tuple(partitions), f"transactions|markers|control|{ABSENT}|{GAPS}"
    return {
        "Parquet of a consumer": Removal(dump(write_parquet), lost, touched, is_dump=True),
        "JSON lines of a consumer": Removal(dump(json_lines), lost, touched, is_dump=True),
        "JSON lines without times": Removal(
            dump(json_lines, "timestamp"),
            "have no times",
            touched,
            True,
            forgets=True,
            is_dump=True,
            changes=BY_TIMES,
            lacks=TIMES,
        ),
        "JSON lines without offsets": Removal(
            dump(json_lines, "offset"), "offset|place", touched, True, is_dump=True, is_numbered=True
        ),
        "JSON lines without partitions": Removal(
            dump(json_lines, "partition"), "partition", touched, True, is_dump=True, is_numbered=True
        ),
    }


def of_workers(partitions: Iterable[int]) -> dict[str, Removal]:
    """The log of workers is missing; a group of workers is in the partitions of both logs that have one number."""
    return {"log of workers absent": Removal(without_topic(WORKERS), ABSENT, tuple(partitions))}


def all_removals(partitions: list[int], *, has_share: bool = True, workers: Sequence[int] = ()) -> dict[str, Removal]:
    """All removals for logs with these partitions, which ``cut`` has made, and with the share state log or without.

    ``workers`` are the partitions of the log of workers that have records.
    """
    found = removals(partitions, has_share=has_share) | of_other_cluster() | of_clocks()
    found |= of_nights(partitions, has_share=has_share) | of_dumps(partitions)
    if workers:
        found |= of_workers(workers)
    return found | pairs(found, partitions, workers)


def nights(removal: Removal, folder: Path) -> list[list[Path]]:
    """Change the logs in a folder; return what each night is given of them."""
    given = [removal.change(folder) or [folder]]
    return given if removal.nights == 1 else [*given, [tomorrow(folder)]]
