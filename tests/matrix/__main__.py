"""Print the matrix: ``python -m tests.matrix [--tables] [--logs FOLDER] [--only PATTERN] [--questions PATTERN]``.

``--seed N [--cells N]``: of a scenario that the seed makes, and of its matrix so many cells that the seed chooses.
"""

import argparse
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from coordinator_core.groups.log_partition import log_partition_of
from tests.matrix.answers import Answer, Question, questions
from tests.matrix.judge import Judged, judge
from tests.matrix.moments import arguments, gone, moment, times_of
from tests.matrix.other_removals import WORKERS, all_removals, nights
from tests.matrix.removals import END, SHARE, NothingToRemoveError, Removal, cut, segments
from tests.matrix.scenarios import scenario, simulated
from tests.matrix.sources import Broken, Files, NeedsSparkError, StoredTables, ThisProcess

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", default=str(ROOT / "data" / "samples" / "logs"))
    parser.add_argument("--tables", action="store_true", help="ask tables that a night has made of the logs")
    parser.add_argument("--only", default=".")
    parser.add_argument("--questions", default=".")
    parser.add_argument("--groups", nargs="*", default=[])
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--verbose", type=int, default=3)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--cells", type=int, default=100)
    chosen = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    if chosen.seed is not None:
        made = scenario(chosen.seed)
        chosen.logs, chosen.topic = simulated(chosen.seed, place / "simulated"), "t0"
        chosen.groups, chosen.count = [*made["groups"]], made["cluster"]["partitions"]
    whole = place / "whole" / "logs"
    shutil.copytree(chosen.logs, whole)
    for number in range(chosen.count):
        partition = whole / f"__consumer_offsets-{number}"
        if not partition.exists():
            partition.mkdir()
            (partition / f"{0:020}.log").write_bytes(b"")
    cut(whole)
    partitions = [number for number in range(chosen.count) if len(segments(whole, number)) > 1]
    has_share = any(whole.glob(f"{SHARE}-*"))
    workers = [number for number in range(chosen.count) if _has_records(whole / f"{WORKERS}-{number}")]
    times = times_of(whole, partitions)
    asked = moment(times)
    asks = {
        name: each
        for name, each in questions(chosen.groups, chosen.topic, arguments(asked)).items()
        if re.search(chosen.questions, name)
    }
    wanted = {
        name: removal
        for name, removal in all_removals(partitions, has_share=has_share, workers=workers).items()
        if re.search(chosen.only, name) and (chosen.tables or not removal.is_of_tables)
    }
    cells = [(name, question) for name in wanted for question in asks]
    if chosen.seed is not None:
        cells = Random(chosen.seed).sample(cells, min(chosen.cells, len(cells)))
    of_removal = {name: {other: asks[other] for each, other in cells if each == name} for name in wanted}
    truth = _answers({question: asks[question] for _, question in cells}, whole)
    for name, answer in truth.items() if chosen.seed is None else ():
        print(f"truth {name}: {len(answer.rows)} rows, code {answer.code} {answer.said.strip()[:200]}", flush=True)
    tally: dict[str, Counter[str]] = {question: Counter() for question in asks}
    for name, removal in wanted.items():
        if not of_removal[name]:
            continue
        folder = place / str(time.time_ns()) / "logs"
        shutil.copytree(whole, folder)
        true, before = truth, times
        try:
            if removal.ends is not None:
                removal.ends(folder)
                true = _answers(of_removal[name], folder)
                before = times_of(folder, asked)
            given = nights(removal, folder)
        except NothingToRemoveError as error:
            print(f"== {name}: left out, {error}", flush=True)
            continue
        after = before if removal.nights > 1 else times_of(folder, asked)  # the next night has all of it again
        is_hidden, loses_end = gone(asked, before, after)
        source = _source(given, folder.parent, of_tables=chosen.tables)
        line: dict[str, Judged] = {}
        for question, ask in of_removal[name].items():
            if (removal.is_tail and "then" not in question) or not re.search(removal.questions, question):
                continue
            if removal.ends is not None and re.search(END, true[question].said):
                continue  # what is open at such an end is not known: it is no truth
            told = replace(removal, hides_time=is_hidden and "then" in question, loses_end=loses_end)
            touched = _touched(told, question, chosen.count)
            line[question] = judge(ask, true[question], source.ask(ask), told, touched)
        _print_line(name, line, chosen.verbose)
        for question, found in line.items():
            tally[question][found.verdict] += 1
        shutil.rmtree(folder.parent)
    _print_tallies(tally)
    shutil.rmtree(place)


def _has_records(partition: Path) -> bool:
    return any(file.stat().st_size for file in partition.glob("*.log"))


def _answers(asks: Mapping[str, Question], folder: Path) -> dict[str, Answer]:
    return {name: Files([folder]).ask(each) for name, each in asks.items()}


def _source(given: list[list[Path]], place: Path, *, of_tables: bool) -> Files | StoredTables | Broken:
    """Return what answers; where its nights break, that is wrong for each question, and the other cells go on."""
    if not of_tables:
        return Files(given[0])
    try:
        return _stored(given, place)
    except Exception as error:
        return Broken(error)


def _stored(given: list[list[Path]], place: Path) -> StoredTables:
    """Return the tables of what is left of the logs; with Spark only where that is needed."""
    try:
        return StoredTables(ThisProcess(), place / "tables", given)
    except NeedsSparkError:
        from jobs import settings
        from jobs.tables import session

        spark = session.get_or_create(settings.load(flags={"spark.master": "local[1]"}).spark)
        return StoredTables(spark, place / "tables in Spark", given)


def _print_line(name: str, line: dict[str, Judged], verbose: int) -> None:
    """Print what the questions say of one removal: the tally, and of what is wrong the first rows."""
    print(f"== {name}: {dict(Counter(found.verdict for found in line.values()))}", flush=True)
    for question, found in line.items():
        for kind in ("wrong", "unreasoned", "needless", "silent"):
            for text in getattr(found, kind)[:verbose]:
                print(f"   {kind} {question}: {text[:400]}")
            if len(getattr(found, kind)) > verbose:
                print(f"   {kind} {question}: {len(getattr(found, kind))} in all")


def _print_tallies(tally: Mapping[str, Counter[str]]) -> None:
    """Print how many cells of each question have which verdict, and of all."""
    for question, counts in tally.items():
        if counts:
            print(f"{question}: {_counts(counts)}")
    print(f"all {sum(map(Counter.total, tally.values()))} cells: {_counts(sum(tally.values(), Counter()))}")


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _touched(removal: Removal, question: str, count: int) -> Callable[[str | None], bool]:
    def is_touched(group: str | None) -> bool:
        return removal.touches_all(question) or group is None or log_partition_of(group, count) in removal.partitions

    return is_touched


if __name__ == "__main__":
    main()
