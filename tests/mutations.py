"""Change the SQL of relations in one place at a time, and say which changes no kept answer shows.

    python -m tests.mutations [READER...] [--wholly]

A reader is named by its module, or its module and function: ``logs``, ``logs.lost_records``; a text of a step by its
module and its name there: ``logs.RANGES``. Each is asked over the stores of ``damaged_tables``, first with its texts as
they are. Then each place of each text is changed that one of ``CHANGES`` finds, and the reader is asked again. Printed
is a line for each text, and each change that no answer shows. ``tests/data/same_relations.json`` says of some why they
change nothing. Of the others a row is missing in the stores that would tell the two apart, and ``test_both_engines``
would not notice if somebody made that change; the text's own test may. ``--wholly``: also readers that take seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.errors import CoordinatorAuditError
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from tests.jobs.relations.damaged_tables import fill_stores
from tests.jobs.relations.readers import Ask, as_json, asked_over
from tests.shared_data import ROOT

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
REASONS: Final = ROOT / "tests" / "data" / "same_relations.json"
"""Changes that change nothing, and why."""
WIDTH: Final = 90
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
        before, after = self.sql[max(0, self.first - 70) : self.first], self.sql[self.last : self.last + 70]
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


def answer(ask: Ask, tables: FolderReader) -> str:
    """The answer as text; an error is an answer, too."""
    try:
        return json.dumps(as_json(ask(tables)), sort_keys=True)
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


class Change(NamedTuple):
    """A change of a text, without the numbers that stores differ in."""

    text: str
    place: str

    @classmethod
    def of(cls, mutation: Mutation) -> Change:
        return cls(*(re.sub(r"[0-9]+", "0", part) for part in (mutation.sql, str(mutation))))


class Tally:
    """Which changes of each text an answer shows, and which readers ask it."""

    def __init__(self) -> None:
        self.shown: dict[str, dict[Change, bool]] = defaultdict(dict)
        """By text, without numbers."""
        self.readers: dict[str, dict[str, None]] = defaultdict(dict)

    def ask(self, name: str, ask: Ask, home: Path, *, wholly: bool) -> bool:
        """Note which changes of its texts an answer shows. Return whether it was asked: not if it is slow."""
        tables, begun = ChangingReader(home), time.monotonic()
        expected = answer(ask, tables)
        if not wholly and time.monotonic() - begun > SECONDS:
            return False
        for sql in sorted(tables.asked):
            changes = [(mutation, Change.of(mutation)) for mutation in mutations(sql)]
            for mutation, change in changes:
                of_text = self.shown[change.text]
                if not of_text.get(change):
                    of_text[change] = answer(ask, ChangingReader(home, mutation)) != expected
            if changes:
                self.readers[changes[0][1].text][name] = None
        return True

    def lines(self, reasons: Mapping[str, str]) -> Iterator[str]:
        """A line for each text, and below it the changes that no answer shows."""
        for text, changes in sorted(self.shown.items(), key=lambda of_text: [*self.readers[of_text[0]]]):
            missed = [change.place for change, is_shown in changes.items() if not is_shown]
            same = [place for place in missed if place in reasons]
            by = next(iter(self.readers[text]))
            yield (
                f"{by}: {len(changes)} changes, {len(changes) - len(missed)} shown, {len(same)} change nothing, "
                f"{len(missed) - len(same)} not shown: {' '.join(text.split())[:WIDTH]}"
            )
            yield from (f"    {place}: {reasons.get(place, 'NOT SHOWN')}" for place in missed)


def main() -> None:
    """Print how many changes of each text the answers show, and why they do not show the others."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--wholly", action="store_true")
    chosen = parser.parse_args()
    tally, reasons = Tally(), json.loads(REASONS.read_text("utf-8"))
    with TemporaryDirectory() as folder:
        stores = fill_stores(Path(folder))
        for name, ask, store in asked_over():
            if chosen.readers and name not in chosen.readers and name.partition(".")[0] not in chosen.readers:
                continue
            if not tally.ask(name, ask, stores[store], wholly=chosen.wholly):
                print(f"{name} is left out over the store {store}: it takes long", flush=True)
    print(*tally.lines(reasons), sep="\n")
    changes = {change: is_shown for of_text in tally.shown.values() for change, is_shown in of_text.items()}
    missed = [change.place for change, is_shown in changes.items() if not is_shown]
    same = sum(place in reasons for place in missed)
    print(
        f"{len(tally.shown)} texts, {len(changes)} changes: {len(changes) - len(missed)} shown, {same} change nothing, "
        f"{len(missed) - same} not shown"
    )


if __name__ == "__main__":
    main()
