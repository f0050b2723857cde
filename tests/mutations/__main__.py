"""Change the SQL of relations in one place at a time, and say which changes neither kept answers nor tests show.

    python -m tests.mutations [READER...] [--wholly] [--by-tests [PATH...] [--limit SECONDS]]

A reader is named by its module, or its module and function: ``logs``, ``logs.lost_records``; a text of a step by its
module and its name there: ``logs.RANGES``. Each is asked over the stores of ``damaged_tables``, first with its texts as
they are. Then each place of each text is changed that one of ``CHANGES`` finds, and the reader is asked again. Printed
is a line for each text, and each change that nothing shows. ``tests/data/same_relations.json`` says of some why they
change nothing. Of the others a row is missing in the stores that would tell the two apart, and no test would notice if
somebody made that change. ``--wholly``: also readers that take seconds.

``--by-tests``: which quick test fails, the one of the kept answers among them; PATH: of those below these paths, in
their order: a change that the tests of one relation show is not asked again of slower ones. READER may be any module of
jobs then. Each change gets ``--limit`` seconds of each file's tests.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from coordinator_core.errors import CoordinatorAuditError
from jobs.tables.folder_reader import FolderReader
from tests.jobs.relations.damaged_tables import fill_stores
from tests.jobs.relations.readers import Ask, as_json, asked_over
from tests.mutations.by_tests import QuickTests, Seen, run
from tests.mutations.changes import asked_through, changed, inner, with_place_changed, without_numbers
from tests.shared_data import ROOT

REASONS: Final = ROOT / "tests" / "data" / "same_relations.json"
"""Changes that change nothing, and why."""
WIDTH: Final = 90
SECONDS: Final = 0.5
"""A reader that takes longer is left out unless it is asked for."""
ERRORS: Final = (CoordinatorAuditError, TypeError, ValueError, AttributeError, KeyError, IndexError, AssertionError)
PATHS: Final = ["tests/jobs"]
ANSWERS: Final = "test_answers_are_those_that_are_kept"


def answer(ask: Ask, home: Path) -> str:
    """The answer as text; an error is an answer, too."""
    try:
        return json.dumps(as_json(ask(FolderReader(str(home)))), sort_keys=True)
    except ERRORS as error:
        return f"{type(error).__name__}: {error}"


class Tally:
    """The places of each text, and what shows their changes."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, None]] = {}
        """By text, without numbers."""
        self.asked_by: dict[str, str] = {}
        """The first reader or module that asks a text."""
        self.shown: dict[str, str] = {}
        """What shows the change of a place."""

    def add(self, sql: str, name: str) -> Mapping[str, str]:
        """Note who asks a text. Return the text with each of its places changed, by place."""
        text, places = without_numbers(inner(sql)), changed(sql)
        if places:
            self.places.setdefault(text, {}).update(dict.fromkeys(places))
            self.asked_by.setdefault(text, name)
        return places

    def ask(self, name: str, ask: Ask, home: Path, *, wholly: bool) -> bool:
        """Note which changes of its texts an answer shows. Return whether it was asked: not if it is slow."""
        texts, begun = dict[str, None](), time.monotonic()

        def note(sql: str) -> str:
            texts[sql] = None
            return sql

        with asked_through(note):
            expected = answer(ask, home)
        if not wholly and time.monotonic() - begun > SECONDS:
            return False
        for place in {place for sql in texts for place in self.add(sql, name)} - self.shown.keys():
            with asked_through(with_place_changed(place)):
                if answer(ask, home) != expected:
                    self.shown[place] = ANSWERS
        return True

    def changes(self, chosen: list[str], reasons: Mapping[str, str], sql: str, module: str) -> list[str]:
        """The places of a text, asked by this module, whose changes nothing shows.

        Texts that tests ask by themselves are those of relations in the tests of these.
        """
        name = module.removeprefix("jobs.").removeprefix("relations.")
        if not module.startswith(("jobs.", "tests.jobs.relations")) or (chosen and not is_chosen(name, chosen)):
            return []
        return [place for place in self.add(sql, name) if place not in self.shown and place not in reasons]

    def note(self, progress: IO[str], changes: Callable[[str, str], list[str]], seen: Seen) -> None:
        """Take what a child has seen, and print which test shows which change."""
        if seen.kind == "asked":
            changes(seen.what, seen.by)
        else:
            self.shown[seen.what] = seen.by
            print(f"{seen.by}: {seen.what}", file=progress, flush=True)

    def lines(self, reasons: Mapping[str, str]) -> Iterator[str]:
        """A line for each text, and below it what shows each change that no answer shows."""
        for text, places in sorted(self.places.items(), key=lambda of_text: self.asked_by[of_text[0]]):
            yield f"{self.asked_by[text]}: {self.sums(places, reasons)}: {text[:WIDTH]}"
            for place in places:
                if ANSWERS not in (shown := self.shown.get(place, "")):
                    yield f"    {place}: {f'shown by {shown}' if shown else reasons.get(place, 'NOT SHOWN')}"

    def sums(self, places: Mapping[str, None], reasons: Mapping[str, str]) -> str:
        shown = [self.shown[place] for place in places if place in self.shown]
        missed = [place for place in places if place not in self.shown]
        same, by_answers = sum(place in reasons for place in missed), sum(ANSWERS in by for by in shown)
        return (
            f"{len(places)} changes, {by_answers} shown by answers, {len(shown) - by_answers} by tests, "
            f"{same} change nothing, {len(missed) - same} not shown"
        )


def is_chosen(name: str, chosen: list[str]) -> bool:
    return name in chosen or name.partition(".")[0] in chosen


def main() -> None:
    """Print how many changes of each text the answers show, and the tests, and why they do not show the others."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--wholly", action="store_true")
    parser.add_argument("--by-tests", metavar="PATH", nargs="*")
    parser.add_argument("--limit", type=float, default=20)
    chosen = parser.parse_args()
    tally, reasons = Tally(), json.loads(REASONS.read_text("utf-8"))
    if chosen.by_tests is not None:
        changes = partial(tally.changes, chosen.readers, reasons)
        with os.fdopen(os.dup(1), "w") as progress:
            note = partial(tally.note, progress, changes)
            run(QuickTests(chosen.by_tests or PATHS, changes, note, chosen.limit))
    else:
        ask_all(tally, chosen.readers, wholly=chosen.wholly)
    print(*tally.lines(reasons), sep="\n")
    every = {place: None for places in tally.places.values() for place in places}
    print(f"{len(tally.places)} texts: {tally.sums(every, reasons)}")


def ask_all(tally: Tally, chosen: list[str], *, wholly: bool) -> None:
    """Ask the readers over the stores."""
    with TemporaryDirectory() as folder:
        stores = fill_stores(Path(folder))
        for name, ask, store in asked_over():
            if (not chosen or is_chosen(name, chosen)) and not tally.ask(name, ask, stores[store], wholly=wholly):
                print(f"{name} is left out over the store {store}: it takes long", flush=True)


if __name__ == "__main__":
    main()
