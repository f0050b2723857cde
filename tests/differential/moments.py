"""Recorded logs at moments: the records that are there, and counts of what is wrong or needlessly unknown."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.core.certainties import KeyedRecord
from tests.differential.decoded import read_lines


def keyed_records(decoded: Path) -> Iterator[KeyedRecord]:
    for line in read_lines(decoded):
        if line.get("emptyBatch"):
            continue
        if line["isControl"]:
            yield KeyedRecord(line["partition"], line["offset"])
        else:
            of = (line["type"], line["key"], line["value"] is None, line["isTransactional"])
            yield KeyedRecord(line["partition"], line["offset"], *of)


@dataclass
class Comparison:
    """Counts over all moments and groups."""

    answers: int = 0
    certain: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    needless: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, wrong: Iterable[tuple[str, str]], needless: Iterable[tuple[str, str]], where: Any) -> None:
        for tally, found in ((self.wrong, wrong), (self.needless, needless)):
            for kind, example in found:
                tally[kind] += 1
                self.examples.append(f"{where} {kind}: {example}")
