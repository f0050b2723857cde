"""Change the SQL of relations in one place at a time, and say which changes no kept answer shows.

    python -m tests.mutations [READER...] [--wholly]

A reader is named by its module, or its module and function: ``logs``, ``logs.lost_records``. Each is asked over the
stores of ``damaged_tables``, first with its texts as they are. Then each place of each text is changed that one of
``CHANGES`` finds, and the reader is asked again. A change that no answer shows is printed. Either it means the
same, such as a condition that another one implies, or a row is missing in the stores that would tell the two apart, and
``test_both_engines`` would not notice if somebody made that change. ``--wholly``: also the readers that take seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pyarrow as pa

from coordinator_core.errors import CoordinatorAuditError
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from tests.jobs.relations.damaged_tables import fill_stores
from tests.jobs.relations.readers import ASKED, as_json, name_of

CHANGES: Final = (
    (r"cluster = :cluster", "TRUE"),
    (r"(?<= )<(?= )", "<="),
    (r"(?<= )<=(?= )", "<"),
    (r"(?<= )>(?= )", ">="),
    (r"(?<= )>=(?= )", ">"),
    (r"(?<= )=(?= )(?! :cluster)", "<>"),
    (r"(?<= )<>(?= )", "="),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"(?<!PRECEDING) AND ", " OR "),
    (r" OR ", " AND "),
    (r"IS NOT NULL", "IS NULL"),
    (r"IS NULL", "IS NOT NULL"),
    (r"(?<!NOT) IN (?=[:(])", " NOT IN "),
    (r" NOT IN ", " IN "),
    (r"NOT coalesce", "coalesce"),
    (r" DESC\b", ""),
    (r"LEFT JOIN", "JOIN"),
    (r"bool_or", "bool_and"),
    (r" [+-] 1\b", ""),
    (r"SELECT DISTINCT", "SELECT"),
)
STORES: Final = ("both", "later")
SECONDS: Final = 0.5
"""A reader that takes longer is left out unless it is asked for."""


class Mutation(NamedTuple):
    """A place of a text, and what stands there instead."""

    sql: str
    first: int
    last: int
    instead: str

    @property
    def changed(self) -> str:
        return self.sql[: self.first] + self.instead + self.sql[self.last :]

    def __str__(self) -> str:
        before, after = self.sql[max(0, self.first - 70) : self.first], self.sql[self.last : self.last + 50]
        return " ".join(f"{before}[{self.sql[self.first : self.last]} -> {self.instead}]{after}".split())


class ChangingReader(FolderReader):
    """Notes the texts that it is asked, and changes one of them."""

    def __init__(self, home: Path, mutation: Mutation | None = None) -> None:
        super().__init__(str(home))
        self.asked: set[str] = set()
        self._mutation = mutation

    def batches(self, sql: str, **values: Value) -> Iterator[pa.RecordBatch]:
        self.asked.add(sql)
        is_meant = self._mutation is not None and self._mutation.sql == sql
        return super().batches(self._mutation.changed if is_meant and self._mutation else sql, **values)


def mutations(sql: str) -> Iterator[Mutation]:
    for pattern, instead in CHANGES:
        for match in re.finditer(pattern, sql):
            yield Mutation(sql, match.start(), match.end(), instead)


def answer(reader: Callable[..., Any], tables: FolderReader) -> str:
    """The answer as text; an error is an answer, too."""
    try:
        return json.dumps(as_json(ASKED[reader](tables)), sort_keys=True)
    except (
        CoordinatorAuditError,
        TypeError,
        ValueError,
        AttributeError,
        KeyError,
        IndexError,
        AssertionError,
    ) as error:
        return f"{type(error).__name__}: {error}"


Shown = dict[tuple[str, str], bool]
"""Whether an answer shows a change, by the changed text and the change, without the numbers that stores differ in."""


def ask(reader: Callable[..., Any], home: Path, shown: Shown, *, wholly: bool) -> bool:
    """Note which changes of its texts the reader's answer shows. Return whether it was asked: not if it takes long."""
    tables, begun = ChangingReader(home), time.monotonic()
    expected = answer(reader, tables)
    if not wholly and time.monotonic() - begun > SECONDS:
        return False
    for mutation in (change for sql in sorted(tables.asked) for change in mutations(sql)):
        key = re.sub(r"[0-9]+", "0", mutation.changed), re.sub(r"[0-9]+", "0", str(mutation))
        if not shown.get(key):
            shown[key] = answer(reader, ChangingReader(home, mutation)) != expected
    return True


def main() -> None:
    """Print the changes that no answer shows."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--wholly", action="store_true")
    chosen = parser.parse_args()
    shown: Shown = {}
    with TemporaryDirectory() as folder:
        stores = fill_stores(Path(folder))
        for reader in ASKED:
            name = name_of(reader)
            if chosen.readers and name not in chosen.readers and name.partition(".")[0] not in chosen.readers:
                continue
            for store in STORES:
                if not ask(reader, stores[store], shown, wholly=chosen.wholly):
                    print(f"{name} is left out: it takes long", flush=True)
    print(*(change for (_, change), is_shown in shown.items() if not is_shown), sep="\n")
    print(f"{len(shown)} changes tried, {sum(not is_shown for is_shown in shown.values())} not shown")


if __name__ == "__main__":
    main()
