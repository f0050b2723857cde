"""The lease: one run writes, whoever has the same host name; each commit asks for it; conflicts are repeated once."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import Row, SparkSession

from jobs.api import CoordinatorAudit
from jobs.pipeline import nights
from jobs.relations.replay import unfinished_run
from jobs.tables import conflicts, lease, written_files
from jobs.tables.conflicts import ConflictError
from jobs.tables.delta import FENCE, Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.lease import WRITER, BusyError, LeaseLostError, LeaseOwner, held
from jobs.tables.local_table import LocalTable
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.nightly import DUMPED_FILES, LEASES, NIGHTLY_STEPS
from jobs.tables.results import NIGHTS
from jobs.tables.table import few

HOUR = timedelta(hours=1)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Tables that this process writes; Spark is not asked for anything."""
    monkeypatch.setattr(Tables, "is_here", lambda self: True)
    return Tables(cast(SparkSession, None), str(tmp_path))


class NoThread:
    """A renewal in the background that stands still."""

    def __init__(self, **given: Any) -> None:
        """Take what a thread takes."""

    def start(self) -> None:
        """Do nothing."""

    join = start


STOPPED = SimpleNamespace(Event=threading.Event, Lock=threading.Lock, Thread=NoThread)
"""``threading`` of a process that stands still."""


def hold(tables: Tables, owner: LeaseOwner, since: datetime) -> None:
    tables.create(LEASES)
    row = {"name": WRITER, "owner": owner.text, "acquired_at": since, "expires_at": since + HOUR}
    tables.replace(LEASES, few(LEASES, [row]))


def row_of(name: str) -> pa.Table:
    return few(DUMPED_FILES, [{"cluster": "c", "path": name, "size": 1, "modified_ns": 1}])


def test_a_run_in_another_container_with_the_same_host_name_is_not_taken_for_dead(tables: Tables) -> None:
    """Its process has a number that nobody has here."""
    mine = LeaseOwner.me()
    assert mine.place
    for other in (mine._replace(place="0" * 12), mine._replace(place="")):
        hold(tables, other._replace(process=2**22 + 1), datetime.now(UTC))
        with pytest.raises(BusyError), held(tables, WRITER, HOUR):
            pass
    hold(tables, mine._replace(process=2**22 + 1), datetime.now(UTC))
    with held(tables, WRITER, HOUR) as (_, before):
        assert before is not None


CONTAINER = ["unshare", "--map-root-user", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
"""Begins a process as a container does: it has the number 1, and the host name is its own."""

IN_CONTAINER = """
import socket, sys, time
from datetime import timedelta
from jobs.tables import lease
from jobs.tables.delta import Tables
from jobs.tables.lease import WRITER, BusyError, held

socket.sethostname("spark-driver")
Tables.is_here = lambda self: True
lease.is_remote = lambda: False
try:
    with held(Tables(None, sys.argv[1]), WRITER, timedelta(hours=1)) as (mine, _):
        print(mine.owner, flush=True)
        sys.stdin.read()
except BusyError as busy:
    print(f"busy: {busy}", flush=True)
"""


@pytest.mark.long
@pytest.mark.skipif(
    subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode != 0,
    reason="this user may not make namespaces",
)
def test_of_two_runs_in_two_containers_with_one_host_name_one_writes(tmp_path: Path) -> None:
    """Each is process 1 of a host of the same name, or has a number that the other one does not see."""
    command = [*CONTAINER, sys.executable, "-c", IN_CONTAINER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        owner = first.stdout.readline()
        assert owner.startswith("spark-driver@")
        second = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        first.communicate()
    assert second.stdout.startswith("busy: another run, spark-driver@"), second
    third = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert third.stdout.startswith("spark-driver@"), third
    assert LeaseOwner.parse(third.stdout).process == LeaseOwner.parse(owner).process == 1


@pytest.mark.parametrize("method", ["ingest", "decode", "replay", "keep_offsets", "audit"])
def test_a_method_of_the_api_that_writes_needs_the_lease(tables: Tables, method: str) -> None:
    tables.create(LOG_RECORDS)
    other = CoordinatorAudit(cast(SparkSession, None), tables.location, "c")
    with held(tables, WRITER, HOUR), pytest.raises(BusyError):
        getattr(other, method)()


@pytest.mark.parametrize("text", ["host/12/abcdef01", "host", "a/b/c/d", "host@place/x/y", ""])
def test_an_owner_that_another_release_wrote_is_never_known_to_be_dead(text: str) -> None:
    assert not LeaseOwner.parse(text).is_gone()


def test_owners_have_random_names() -> None:
    first, second = LeaseOwner.me(), LeaseOwner.me()
    assert first.token != second.token
    assert LeaseOwner.parse(first.text) == first


def test_a_run_that_stood_still_commits_nothing_after_another_has_taken_the_lease(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The renewal in the background stood still as well: nothing but the commit itself asks."""
    monkeypatch.setattr(lease, "threading", STOPPED)
    tables.create(DUMPED_FILES)
    with held(tables, WRITER, HOUR):
        tables.merge(DUMPED_FILES, row_of("a"), {}, insert=True)
        later = datetime.now(UTC) + timedelta(hours=2)
        monkeypatch.setattr(lease, "_now", lambda: later)
        other = Tables(cast(SparkSession, None), tables.location)
        with held(other, WRITER, HOUR) as (_, before):
            assert before is not None
            with pytest.raises(LeaseLostError):
                tables.merge(DUMPED_FILES, row_of("b"), {}, insert=True)
            with pytest.raises(LeaseLostError):
                tables.create(RUNS)
            other.merge(DUMPED_FILES, row_of("c"), {}, insert=True)
    there = DeltaTable(f"{tables.location}/dumped_files").to_pyarrow_table()["path"].to_pylist()
    assert sorted(there) == ["a", "c"]


WRITES: dict[str, Callable[[Tables], None]] = {
    "append": lambda tables: tables.append(DUMPED_FILES, row_of("b"), "late"),
    "replace": lambda tables: tables.replace(DUMPED_FILES, row_of("b")),
    "merge": lambda tables: tables.merge(DUMPED_FILES, row_of("b"), {}, insert=True),
    "delete": lambda tables: tables.delete(DUMPED_FILES, row_of("a")),
    "clear": lambda tables: tables.clear(DUMPED_FILES),
    "files": lambda tables: written_files.commit(tables, DUMPED_FILES, [FILE], "late"),
}
FILE = Row(table="dumped_files", path="late.parquet", size=1, stats="{}")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_run_that_stood_still_within_a_commit_commits_nothing(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, write: Callable[[Tables], None]
) -> None:
    """Between its last check of the lease and its commit, another run of the same host takes the lease and writes.

    Its clock stood still, too: only the commit of the other one shows that something has happened.
    """
    monkeypatch.setattr(lease, "threading", STOPPED)
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.001)
    tables.create(DUMPED_FILES)
    with held(tables, WRITER, HOUR) as (mine, _):
        tables.merge(DUMPED_FILES, row_of("a"), {}, insert=True)
        other, now = Tables(cast(SparkSession, None), tables.location), lease._now
        checks = iter(range(9))

        def check(*, ask: bool = False) -> None:
            mine.check(ask=ask)
            if next(checks) == 1:  # the second check is the one after the table was opened
                monkeypatch.setattr(lease, "_now", lambda: now() + 2 * HOUR)
                with held(other, WRITER, HOUR, [DUMPED_FILES]) as (_, before):
                    assert before == mine.owner
                    other.merge(DUMPED_FILES, row_of("c"), {}, insert=True)
                    monkeypatch.setattr(lease, "_now", now)

        tables.check_lease = check
        with pytest.raises(LeaseLostError):
            write(tables)
    there = DeltaTable(f"{tables.location}/dumped_files").to_pyarrow_table()["path"].to_pylist()
    assert sorted(there) == ["a", "c"]


def test_only_the_tables_of_a_lease_that_was_not_given_back_are_fenced(tables: Tables) -> None:
    tables.create(DUMPED_FILES)
    with held(tables, WRITER, HOUR, [DUMPED_FILES, RUNS, LEASES]):
        pass
    with held(tables, WRITER, HOUR, [DUMPED_FILES, RUNS, LEASES]):
        assert FENCE not in tables.properties(DUMPED_FILES)
    hold(tables, LeaseOwner.me()._replace(process=2**22 + 1), datetime.now(UTC))
    with held(tables, WRITER, HOUR, [DUMPED_FILES, RUNS, LEASES]) as (mine, _):
        assert tables.properties(DUMPED_FILES)[FENCE] == LeaseOwner.parse(mine.owner).token
        assert FENCE not in tables.properties(LEASES)
        assert not tables.exists(RUNS)


def test_a_lease_that_was_lost_during_a_commit_ends_the_run(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark commits, nothing can be put between the beginning of the commit and the check."""
    monkeypatch.setattr(lease, "threading", STOPPED)
    tables.create(DUMPED_FILES)
    with held(tables, WRITER, HOUR):
        now = lease._now

        def write() -> None:
            monkeypatch.setattr(lease, "_now", lambda: now() + 2 * HOUR)
            hold(Tables(cast(SparkSession, None), tables.location), LeaseOwner.me(), lease._now())

        with pytest.raises(LeaseLostError):
            tables.commit(DUMPED_FILES, write)


SAID = {
    "delta-rs": CommitFailedError("Failed to commit transaction: Metadata changed since last commit."),
    "metadata": Exception("[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the Delta table has"),
    "append": Exception("[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: Files were added to the root of the"),
    "append, 4.x": Exception("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected. A concurrent"),
    "delete, read": Exception("[DELTA_CONCURRENT_DELETE_READ] ConcurrentDeleteReadException: This transaction att"),
    "delete, delete": Exception("[DELTA_CONCURRENT_DELETE_DELETE] ConcurrentDeleteDeleteException: This transacti"),
    "transaction": Exception("[DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException: This error occurs"),
    "write": Exception("[DELTA_CONCURRENT_WRITE] ConcurrentWriteException: A concurrent transaction has written"),
    "class only": Exception("io.delta.exceptions.ConcurrentAppendException: Files were added by a concurrent update"),
}


def optimized(most: int) -> list[conflicts.TableCommit]:
    """Return the commits of a table that is optimized after each time it is asked for its last one."""
    return [conflicts.TableCommit(most, 0, "OPTIMIZE", None)]


@pytest.mark.parametrize("error", SAID.values(), ids=SAID)
def test_what_the_engines_say_of_a_conflict_is_known(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.0)
    errors = iter([error, None])

    def write() -> str:
        failed = next(errors)
        if failed is not None:
            raise failed
        return "written"

    assert conflicts.repeated("t", write, optimized, adds=False) == "written"


@pytest.mark.parametrize("text", ["Files were added", "[DELTA_TABLE_NOT_FOUND] t", "No space left on device"])
def test_another_error_is_not_repeated(text: str) -> None:
    def write() -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match=re.escape(text)):
        conflicts.repeated("t", write, optimized, adds=True)


def test_a_run_too_slow_for_its_lease_blames_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.0)
    tries: list[str] = []

    def write() -> None:
        tries.append("try")
        raise ValueError(f"[USER_RAISED_EXCEPTION] {conflicts.LATE}")

    with pytest.raises(ConflictError, match=r"table t was not written: .* raise nightly\.lease_minutes") as refused:
        conflicts.repeated("t", write, optimized, adds=False)
    assert "another program" not in str(refused.value)
    assert len(tries) == conflicts.ATTEMPTS


def test_a_lease_that_nobody_took_meanwhile_is_renewed_by_the_commit(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.create(DUMPED_FILES)
    with held(tables, WRITER, HOUR) as (mine, _):
        later = datetime.now(UTC) + timedelta(hours=2)
        monkeypatch.setattr(lease, "_now", lambda: later)
        tables.merge(DUMPED_FILES, row_of("a"), {}, insert=True)
        mine.check()
        (row,) = DeltaTable(f"{tables.location}/leases").to_pyarrow_table().to_pylist()
        assert row["expires_at"] == later + HOUR


def test_a_renewal_that_loses_all_races_says_so_and_the_next_one_succeeds(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody took the lease."""
    monkeypatch.setattr(lease, "threading", STOPPED)
    with held(tables, WRITER, HOUR) as (mine, _):
        with monkeypatch.context() as lost:
            lost.setattr(LocalTable, "replace_if_unchanged", lambda *_: False)
            with pytest.raises(ConflictError, match="each of 5 times another program committed to the table first"):
                mine.check(ask=True)
        mine.check(ask=True)


def test_a_run_that_has_not_ended_is_named_until_the_next_one_ends(tables: Tables) -> None:
    reader = FolderReader(tables.location)
    assert unfinished_run(reader, datetime.now(UTC)) is None
    with held(tables, WRITER, HOUR):
        said = unfinished_run(FolderReader(tables.location), datetime.now(UTC))
        assert said is not None
        assert "has not ended" in said
        killed = unfinished_run(FolderReader(tables.location), datetime.now(UTC) + 2 * HOUR)
        assert killed is not None
        assert "was killed" in killed
    assert unfinished_run(FolderReader(tables.location), datetime.now(UTC)) is None


def interfere(tables: Tables, monkeypatch: pytest.MonkeyPatch, change: Any, times: int) -> list[int]:
    """Let another program commit between the reading and the writing of a merge, as often as ``times``."""
    merge, seen = LocalTable.merge, list[int]()

    def late(self: LocalTable, *given: Any, **named: Any) -> None:
        seen.append(1)
        if len(seen) <= times:
            change(f"{tables.location}/dumped_files")
        merge(self, *given, **named)

    monkeypatch.setattr(LocalTable, "merge", late)
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.001)
    return seen


def compact(place: str) -> None:
    DeltaTable(place).optimize.compact()


def add(place: str) -> None:
    write_deltalake(place, row_of("foreign"), mode="append")


def night(name: str, findings: int) -> dict[str, Any]:
    return {"cluster": "c", "night": name, "ended_ms": 1, "findings": findings}


@pytest.mark.parametrize("with_steps", [True, False], ids=["after other nights", "the first night"])
def test_a_night_that_was_killed_after_it_had_counted_has_no_row(tables: Tables, with_steps: bool) -> None:
    """The night that completes it counts once for both."""
    tables.create(NIGHTS)
    for each in (NIGHTLY_STEPS, GROUP_STATES, *HISTORY.values()):
        tables.create(each)
    tables.append(GROUP_STATES, few(GROUP_STATES, [{"cluster": "c", "log_topic": "t", "group_id": "g"}]), "state")
    if with_steps:
        tables.append(NIGHTS, few(NIGHTS, [night("1", 4)]), "1")
        tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [{"night": "1", "number": 1}]), "1")
    tables.append(NIGHTS, few(NIGHTS, [night("2", 5)]), "2")
    for _ in range(2):
        nights.count(tables, "3")
    rows = DeltaTable(f"{tables.location}/nights").to_pyarrow_table()["night"].to_pylist()
    assert sorted(rows) == (["1", "3"] if with_steps else ["3"])


UPDATE = {"size": "s.size"}


@pytest.mark.parametrize("clock_s", [-3_600, 0, 3_600], ids=["behind", "right", "ahead"])
def test_a_merge_that_meets_maintenance_is_repeated(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, clock_s: int
) -> None:
    """Whatever the clock of this machine says beside that of the other program."""
    tables.create(DUMPED_FILES)
    for name in "ab":
        tables.merge(DUMPED_FILES, row_of(name), {}, insert=True)
    seen = interfere(tables, monkeypatch, compact, 1)
    now_s = time.time
    monkeypatch.setattr(time, "time", lambda: now_s() + clock_s)
    tables.merge(DUMPED_FILES, row_of("a").set_column(2, "size", pa.array([7])), UPDATE, insert=True)
    rows = DeltaTable(f"{tables.location}/dumped_files").to_pyarrow_table().to_pylist()
    assert sorted((row["path"], row["size"]) for row in rows) == [("a", 7), ("b", 1)]
    assert len(seen) == 2


def test_a_merge_that_meets_rows_of_another_program_is_not_repeated(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.create(DUMPED_FILES)
    tables.merge(DUMPED_FILES, row_of("a"), {}, insert=True)
    seen = interfere(tables, monkeypatch, add, 9)
    with pytest.raises(ConflictError, match=r"dumped_files.* was changed by another program \(WRITE\)"):
        tables.merge(DUMPED_FILES, row_of("a"), UPDATE, insert=True)
    assert len(seen) == 1


def test_an_append_is_repeated_and_never_doubled(tables: Tables) -> None:
    """Whatever the others do: its rows are added once."""
    tables.create(DUMPED_FILES)
    failures = iter([True, True, False])

    def write() -> None:
        if next(failures):
            raise _CommitFailedError("a concurrent transaction")
        tables.local(DUMPED_FILES).append(row_of("a"), "t")  # type: ignore[union-attr]

    _CommitFailedError.__name__ = "CommitFailedError"
    tables.commit(DUMPED_FILES, write, adds=True)
    tables.append(DUMPED_FILES, row_of("b"), "again")
    tables.append(DUMPED_FILES, row_of("b"), "again")
    rows = DeltaTable(f"{tables.location}/dumped_files").to_pyarrow_table()["path"].to_pylist()
    assert sorted(rows) == ["a", "b"]


class _CommitFailedError(Exception):
    """As delta-rs raises it."""
