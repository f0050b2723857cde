"""What the served page takes from tables of many groups: its first page, groups at a moment, one group, a search.

``python -m benchmarks serve [GROUPS] [REBALANCES] [FOLDER]`` (100,000 and 10,000,000; FOLDER keeps the tables). The
history tables are made of rows as nights leave them: 20 files, each with its part of the time and with all groups in
order; the last epoch of each group is open. What no question of the page reads is null. It prints seconds of the clock
and of the processor: the first time, in which the tables are opened, and the least of four more; and the memory of the
process.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from jobs.report.render import served_page
from jobs.serve.from_tables import ServedTables
from jobs.serve.site import GroupsAsked, Site
from jobs.settings import load
from jobs.tables.catalog import CATALOG
from jobs.tables.folder_reader import FolderReader

NIGHTS: Final = 20
BEGIN_MS: Final = 1_780_000_000_000
STEP_MS: Final = 86_400_000
TIMES: Final = 5
EMPTY: Final = ("violations", "target_audits", "commit_summaries", "share_partitions", "share_initializations")
OTHERS: Final = (
    "topic_history",
    "group_records",
    "offset_commits",
    "cluster_records",
    "log_records",
    "runs",
    "quarantine",
)


def main(groups: int = 100_000, rebalances: int = 10_000_000, kept: str | None = None) -> None:
    """Make the tables, ask, and print what it took."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or temporary
        if not Path(folder, "runs").exists():
            began = time.monotonic()
            _make(Path(folder), groups, rebalances)
            print(f"{groups:,} groups, {rebalances:,} rebalances: tables made in {time.monotonic() - began:.0f} s")
        chosen = load(environment={}, flags={"cluster": "c"})
        middle = BEGIN_MS + NIGHTS * STEP_MS // 2
        some = f"group-{groups // 3:06}"
        # An answer about groups is kept: each time another one is asked for.
        questions: Mapping[str, Callable[[ServedTables, int], object]] = {
            "the first page": lambda place, _: served_page(place.overview(), is_live=False),
            "its groups": lambda place, turn: place.groups(GroupsAsked(first=100 * turn)),
            "groups at a moment": lambda place, turn: place.groups(GroupsAsked(at_ms=middle + turn)),
            "two moments, what changed": lambda place, turn: place.groups(
                GroupsAsked(at_ms=middle + turn, than_ms=middle + 600_000, only_changed=True)
            ),
            "one group, a window": lambda place, _: Site(place).answer(
                "/api/group", {"group": some, "since": str(middle), "until": str(middle + STEP_MS)}
            ),
            "a search": lambda place, _: place.search("host-77"),
        }
        for name, ask in questions.items():
            place = ServedTables(lambda: FolderReader(folder), chosen)
            took = []
            for turn in range(TIMES):
                at = time.monotonic(), time.process_time()
                ask(place, turn)
                took.append((time.monotonic() - at[0], time.process_time() - at[1]))
            first, least = took[0], (min(each) for each in zip(*took[1:], strict=True))
            print(f"{name}: {_seconds(*first)} the first time, then {_seconds(*least)}", flush=True)
        print(f"memory of the process at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def _seconds(clock: float, processor: float) -> str:
    return f"{clock:.2f} s ({processor:.2f} s of processors)"


def _make(folder: Path, groups: int, rebalances: int) -> None:
    each = rebalances // NIGHTS
    random = np.random.default_rng(7)
    for night in range(NIGHTS):
        of_group = np.sort(random.integers(0, groups, each))
        ids = _ids(of_group)
        times = BEGIN_MS + night * STEP_MS + random.integers(0, STEP_MS, each)
        epochs = np.arange(each) % 1_000 + night * 1_000
        at, ended = _positions(epochs, times), _positions(epochs + 1, times + 4_000)
        _write(
            folder,
            "rebalances",
            each,
            group_id=ids,
            group_type=_same("CONSUMER", each),
            at=at,
            finished=ended,
            to_epoch=epochs,
            from_epoch=epochs - 1,
            outcome=_same("converged", each),
            is_open=_same(False, each),
            began_before_ms=times,
            causes=_causes(each),
            behind=_lists(each),
            revocations=_lists(each),
            skipped_generations=_same(0, each),
            history_complete=_same(True, each),
        )
        _write(
            folder,
            "group_epochs",
            each,
            group_id=ids,
            group_type=_same("CONSUMER", each),
            epoch=epochs,
            opened=at,
            ended=ended,
            is_open=_same(False, each),
            causes=_lists(each),
            history_complete=_same(True, each),
        )
    every = np.arange(groups)
    _write(
        folder,
        "group_epochs",
        groups,
        group_id=_ids(every),
        group_type=_same("CONSUMER", groups),
        epoch=_same(NIGHTS * 1_000, groups),
        opened=_positions(every, np.full(groups, BEGIN_MS + NIGHTS * STEP_MS)),
        is_open=_same(True, groups),
        causes=_lists(groups),
        history_complete=_same(True, groups),
    )
    members = groups * 4
    ids = _ids(np.repeat(np.arange(groups), 4))
    joined = _positions(np.arange(members), BEGIN_MS + random.integers(0, NIGHTS * STEP_MS, members))
    names = pa.array([f"member-{number}" for number in range(members)])
    hosts = pa.array([f"/host-{number % 5_000}" for number in range(members)])
    _write(
        folder,
        "memberships",
        members,
        group_id=ids,
        group_type=_same("CONSUMER", members),
        member_id=names,
        client_id=names,
        client_host=hosts,
        joined=joined,
        came_by=_same("join", members),
        is_open=_same(True, members),
        client_tags=_lists(members),
        subscribed_topics=_lists(members),
        history_complete=_same(True, members),
        client=_same("java", members),
        client_certainty=_same("likely", members),
    )
    _write(
        folder,
        "assignments",
        members,
        group_id=ids,
        group_type=_same("CONSUMER", members),
        member_id=names,
        kind=_same("current", members),
        role=_same("partition", members),
        resource=_same("t", members),
        topic=_same("t", members),
        partition=np.arange(members) % 4,
        since=joined,
        is_open=_same(True, members),
        history_complete=_same(True, members),
    )
    _write(
        folder,
        "group_states",
        groups,
        group_id=_ids(np.arange(groups)),
        log_topic=_same("__consumer_offsets", groups),
        log_partition=_same(0, groups),
        timestamp_ms=_same(BEGIN_MS + NIGHTS * STEP_MS, groups),
    )
    found = groups // 20
    _write(
        folder,
        "findings",
        found,
        group_id=_ids(np.arange(found) * 20),
        kind=_same("slow_rebalance", found),
        level=_same("warning", found),
        score=np.arange(found) % 60 / 1.0,
        value=np.arange(found),
        threshold=_same(1, found),
        detail=_same("a rebalance took long", found),
        since_ms=_same(BEGIN_MS, found),
        until_ms=_same(BEGIN_MS + 5_000, found),
        is_open=_same(False, found),
        evidence=_lists(found),
        meaning=_same("", found),
        advice=_same("", found),
        certainty=_same("", found),
        log_topic=_same("__consumer_offsets", found),
        history_complete=_same(True, found),
        covered=_same(False, found),
    )
    _write(
        folder,
        "log_ranges",
        1,
        log_topic=_same("__consumer_offsets", 1),
        log_partition=_same(0, 1),
        first_offset=_same(0, 1),
        last_offset=_same(rebalances, 1),
        first_ms=_same(BEGIN_MS, 1),
        last_ms=_same(BEGIN_MS + NIGHTS * STEP_MS, 1),
        records=_same(rebalances + 1, 1),
        has_start=_same(True, 1),
    )
    for name in (*EMPTY, *OTHERS):
        _write(folder, name, 0)


def _write(folder: Path, name: str, rows: int, **columns: Any) -> None:
    """Append rows with these columns to a table; the others are null, but for the cluster."""
    schema = CATALOG[name].schema
    columns = {"cluster": _same("c", rows), **columns}
    made = []
    for field in schema:
        given = columns.get(field.name)
        if given is None:
            made.append(pa.nulls(rows, field.type))
            continue
        array = given if isinstance(given, pa.Array) else pa.array(given)
        made.append(pa.array([[]] * 0, field.type) if rows == 0 else _as(array, field.type, rows))
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    write_deltalake(str(folder / name), pa.Table.from_arrays(made, schema=nullable), mode="append")


def _as(array: pa.Array, kind: pa.DataType, rows: int) -> pa.Array:
    if isinstance(array, pa.ListArray):
        fields = [
            array.values.field(field.name)
            if field.name == "kind"
            else _as(_lists(len(array.values)), field.type, len(array.values))
            for field in kind.value_type
        ]
        return pa.ListArray.from_arrays(array.offsets, pa.StructArray.from_arrays(fields, fields=list(kind.value_type)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, dtype=np.int32)), pa.nulls(0, kind.value_type))
    return array.cast(kind)


def _ids(numbers: Any) -> pa.Array:
    names = pa.array([f"group-{number:06}" for number in range(int(numbers.max()) + 1)])
    return names.take(pa.array(numbers))


def _same(value: Any, rows: int) -> pa.Array:
    return pa.array([value] * rows) if rows < 2 else pa.repeat(pa.scalar(value), rows)


def _lists(rows: int) -> pa.Array:
    return pa.nulls(rows)


def _causes(rows: int) -> pa.Array:
    """One cause for each rebalance, two for each tenth."""
    ends = np.arange(1, rows + 1) + np.arange(1, rows + 1) // 10
    kinds = pa.array(["member_joined", "member_left", "topic_grown"]).take(pa.array(np.arange(ends[-1]) % 3))
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([kinds], names=["kind"]))


def _positions(offsets: Any, times: Any) -> pa.Array:
    zeros = pa.array(np.zeros(len(offsets), dtype=np.int32))
    parts = [zeros, pa.array(offsets.astype(np.int64)), pa.array(times.astype(np.int64))]
    return pa.StructArray.from_arrays(parts, names=["partition", "offset", "timestamp_ms"])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4]) if len(sys.argv) > 2 else main()
