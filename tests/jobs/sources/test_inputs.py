"""Every shape of input in both readers; ``docs/inputs.md`` has what is read, a file what is said (--rewrite)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from coordinator_core.errors import InputError
from coordinator_core.history.knowledge import without_positions
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.batch_format import Damage, Kind
from jobs.sources.dump import open_dump
from jobs.sources.files import KNOWN_TOPICS, find_group_logs, numbered
from jobs.sources.log_reader import log_rows
from tests.jobs.sources.input_shapes import SHAPES, console, records
from tests.shared_data import ROOT

PAGE = ROOT / "docs" / "inputs.md"
SAID = ROOT / "tests" / "data" / "inputs_said.txt"
COPY = f"source.{GROUP_LOG}={GROUP_LOG}"
OF_CONSOLE = ("console consumer, 3.8 and later", "console consumer until 3.7")
OLD = ("console consumer until 3.7", "kafka-dump-log until 3.8")
HEAD = "| done | inputs |\n|---|---|\n"
NO_SPARK = cast("Any", None)


class Read(NamedTuple):
    """``records``: keys, values and, where the input has them, offsets and times; None: it was refused."""

    records: list[tuple[object, ...]] | None
    said: list[str]
    positions: bool = True


def by_files(place: Path, topics: frozenset[str]) -> Read:
    """As ``--log`` reads it."""
    said: list[str] = []
    try:
        logs = find_group_logs([place], said.append, topics)
    except InputError as error:
        return Read(None, [str(error)])
    found = []
    for part in (part for log in logs if log.family.name == "GROUP" for part in log.parts()):
        if isinstance(part, Damage):
            said.append(part.cause)
            continue
        found += [(row.offset, row.timestamp, row.key, row.value) for row in log_rows(part) if row.kind == "record"]
    lacking = without_positions(numbered(logs))
    return Read(found if found or not said else None, [*said, *lacking], not lacking)


def by_night(place: Path, topics: frozenset[str]) -> Read:
    """As a night of one process reads it."""
    said: list[str] = []
    found: list[tuple[object, ...]] = []
    try:
        for dump in open_dump(NO_SPARK, [str(place)], topics=topics, warn=said.append):
            assert dump.source is not None, "only Spark reads it"
            batches = (batch for task in dump.source.partitions() for batch in dump.source.read(task))
            for row in (row for batch in batches for row in batch.to_pylist()):
                if row["kind"] == Kind.RECORD.value and row["log_topic"] == GROUP_LOG:
                    found.append((row["log_offset"], row["timestamp_ms"], row["key"], row["value"]))
                elif row["kind"] == "damaged":
                    said.append(row["error"])
    except InputError as error:
        return Read(None, [str(error)])
    return Read(found if found or not said else None, said)


def wanted(name: str) -> list[tuple[object, ...]]:
    rows = [(each["offset"], each["timestamp"], each["key"], each["value"]) for each in records()]
    printed = len((console("offsets") + console("groupmetadata")).splitlines())
    return rows if name not in OF_CONSOLE else [row for row in rows if row[2][1] <= 2][:printed]  # type: ignore[index]


def result(name: str, place: Path, topics: frozenset[str] = KNOWN_TOPICS) -> tuple[str, str]:
    """Return what is done with an input, and what is said of it, after both readers agreed."""
    files, night = by_files(place, topics), by_night(place, topics)
    if name != "only the metadata log":  # a night takes it, and other dumps later
        assert (files.records is None) == (night.records is None), (files.said, night.said)
        assert sorted(map(repr, files.records or ())) == sorted(map(repr, night.records or ()))
    if files.records is None:
        return "refused", files.said[0]
    said = files.said[0] if files.said else ""
    if name in OLD:
        return "read in part", said
    got = files.records if files.positions else [row[2:] for row in files.records]
    whole = wanted(name) if files.positions else [row[2:] for row in wanted(name)]
    if name == "a tar that was cut":
        assert got
        assert not set(map(repr, whole)) & set(map(repr, got)), "the partition that was cut"
        return "read in part", said
    missing = set(map(repr, whole)) - set(map(repr, got))
    assert not missing, f"{len(missing)} of {len(whole)} records are missing"
    return "read" if files.positions else "read, without positions", said


def plain(text: str, folder: Path) -> str:
    """Return what is said without the place of the test, and without what every refused folder is told."""
    text = re.sub(rf"{re.escape(str(folder))}/?", "", text).removeprefix(": ")
    return re.sub("contains no segments of [^;]*; ", "", text)


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Return the inputs by what is done with them."""
    named: dict[str, list[str]] = {}
    for name, done, _ in rows:
        named.setdefault(done, []).append(name)
    return "".join(f"| {done} | {'; '.join(names)} |\n" for done, names in named.items())


def test_each_input_is_read_alike_or_refused_with_what_to_do(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    rows = []
    for number, (name, make) in enumerate(SHAPES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            place = make(folder)
        except ImportError:  # fastavro is an extra
            rows.append((name, "read", ""))
            continue
        done, said = result(name, place)
        rows.append((name, done, plain(said, folder)))
        if name.startswith("MirrorMaker"):
            assert result(name, place, KNOWN_TOPICS | {COPY})[0] == "read"
    before = PAGE.read_text(encoding="utf-8")
    page = before[: before.index(HEAD)] + HEAD + table(rows)
    said = "".join(f"{name}: {text}\n" for name, _, text in rows if text)
    if pytestconfig.getoption("--rewrite"):
        PAGE.write_text(page, encoding="utf-8")
        SAID.write_text(said, encoding="utf-8")
    else:
        assert page == before, "docs/inputs.md is stale: --rewrite"
        assert said == SAID.read_text(encoding="utf-8"), "what is said has changed: --rewrite"
