"""Changes of a catalog's table by other programs, which many commits of maintenance may hide."""

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tables.conflicts import ConflictError, TableCommit
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.publication import Planned, _restore
from jobs.tables.working_copy import COMMITS, MAINTENANCE, Same, WorkingCopy

NAME = DUMPED_FILES.name
OPTIMIZE = sorted(MAINTENANCE)[0]


def copy_of(versions: range, written_ms: int = 0) -> WorkingCopy:
    """A copy of version 5 of a table whose newest commits, all of maintenance, have these versions."""
    copy = object.__new__(WorkingCopy)
    copy.there = SimpleNamespace(name=lambda table: table.name)  # type: ignore[assignment]
    copy._same = {NAME: Same(5, 0, 0)}
    commits = [TableCommit(version, written_ms, OPTIMIZE, None) for version in reversed(versions)]
    copy._commits = lambda name: commits  # type: ignore[method-assign]
    return copy


def test_maintenance_since_the_copy_changes_nothing() -> None:
    newest = copy_of(range(5, 5 + COMMITS))._unchanged(NAME)
    assert newest.version == 4 + COMMITS


def test_nothing_is_published_where_the_copied_version_is_out_of_sight() -> None:
    with pytest.raises(ConflictError, match=f"{COMMITS} commits or more"):
        copy_of(range(6, 6 + COMMITS))._unchanged(NAME)


@pytest.mark.parametrize("versions", [range(6, 6 + COMMITS + 1), range(4)], ids=["maintained", "made again"])
def test_what_a_killed_night_wrote_is_not_taken_for_restored_where_it_is_out_of_sight(versions: range) -> None:
    commits = [TableCommit(version, 0, OPTIMIZE, None) for version in reversed(versions)]
    there: Any = SimpleNamespace(commits=lambda most: commits[:most])
    tables: Any = SimpleNamespace(there=lambda table: there, name=lambda table: table.name)
    with pytest.raises(ConflictError, match=rf"dumped_files has {len(commits)} commits or more, .* since version 5, "):
        _restore(tables, NAME, Planned(5, 1))


@pytest.mark.parametrize("versions", [range(4), range(8)], ids=["younger", "older"])
def test_nothing_is_published_to_a_table_that_was_made_again(versions: range) -> None:
    with pytest.raises(ConflictError, match="another table was made in its place"):
        copy_of(versions, written_ms=7)._unchanged(NAME)
