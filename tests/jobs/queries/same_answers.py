"""What files and tables say of groups at a moment, to be compared."""

from typing import Any

import pytest

from coordinator_core.groups.describe import describe
from coordinator_core.groups.owners import possible_owners
from coordinator_core.records import GROUP_LOG
from jobs.queries.interface import GroupsThen
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.spark_reader import SparkReader
from tests.core.certainties import Described


def folder_reader(tables: Tables) -> FolderReader:
    """The tables read in this process."""
    return FolderReader(tables.location)


def spark_reader(tables: Tables) -> SparkReader:
    """The tables read by Spark."""
    return SparkReader(tables.spark, tables.location)


def descriptions(then: GroupsThen) -> list[dict[str, Any]]:
    around = then.surroundings()
    return [describe(group, offsets, around, certainty) for group, offsets, certainty in then.groups()]


def described(then: GroupsThen) -> Described:
    return {each["listing"]["groupId"]: each for each in descriptions(then)}


def offsets_then(then: GroupsThen) -> list[tuple[Any, ...]]:
    """Description, committed offsets and those of open transactions of every group."""
    around = then.surroundings()
    return [
        (
            describe(group, held, around, certainty),
            held.committed,
            {of: each for of, each in held.pending.items() if each},
            list(possible_owners([(group, held, certainty)], then.image(), "orders")),
        )
        for group, held, certainty in then.groups()
    ]


def only_topics_missing(message: str) -> None:
    """Take a warning of logs without a metadata log: nothing else may be missing of them."""
    if not message.startswith(("the metadata log", "no metadata log")):
        pytest.fail(message)


def only_logs_of_others_missing(message: str) -> None:
    """Take a warning of the log of workers alone: it has no topics, and nothing of other groups."""
    if not message.startswith(f"{GROUP_LOG} was not given"):
        only_topics_missing(message)
