"""Print the matrix: ``python -m tests.matrix [--logs FOLDER] [--only PATTERN] [--questions PATTERN] [--verbose]``."""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from coordinator_core.groups.log_partition import log_partition_of
from tests.matrix.answers import Answer, asked, judge, questions
from tests.matrix.removals import Removal, cut, removals, segments

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", default=str(ROOT / "data" / "samples" / "logs"))
    parser.add_argument("--only", default=".")
    parser.add_argument("--questions", default=".")
    parser.add_argument("--groups", nargs="*", default=[])
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--verbose", type=int, default=3)
    chosen = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    whole = place / "whole" / "logs"
    shutil.copytree(chosen.logs, whole)
    for number in range(chosen.count):
        partition = whole / f"__consumer_offsets-{number}"
        if not partition.exists():
            partition.mkdir()
            (partition / f"{0:020}.log").write_bytes(b"")
    cut(whole)
    partitions = [number for number in range(chosen.count) if len(segments(whole, number)) > 1]
    moments = [f"{number}:{_middle(whole, number)}" for number in partitions]
    asks = {
        name: each
        for name, each in questions(chosen.groups, chosen.topic, moments).items()
        if re.search(chosen.questions, name)
    }
    truth: dict[str, Answer] = {name: asked(each.arguments, ["--log", str(whole)]) for name, each in asks.items()}
    for name, answer in truth.items():
        print(f"truth {name}: {len(answer.rows)} rows, code {answer.code} {answer.said.strip()[:200]}", flush=True)
    tally: Counter[str] = Counter()
    for name, removal in removals(partitions).items():
        if not re.search(chosen.only, name):
            continue
        folder = place / str(time.time_ns()) / "logs"
        shutil.copytree(whole, folder)
        given = removal.change(folder) or [folder]
        source = [part for each in given for part in ("--log", str(each))]
        line = []
        for question, ask in asks.items():
            if removal.is_tail and "then" not in question:
                continue
            said = asked(ask.arguments, source)
            found = judge(
                ask, truth[question], said, removal.reason, _touched(removal, chosen.count), forgets=removal.forgets
            )
            tally[found.verdict] += 1
            line.append((question, found))
        print(f"== {name}: {dict(Counter(found.verdict for _, found in line))}", flush=True)
        for question, found in line:
            for kind in ("wrong", "unreasoned", "needless"):
                for text in getattr(found, kind)[: chosen.verbose]:
                    print(f"   {kind} {question}: {text[:400]}")
                if len(getattr(found, kind)) > chosen.verbose:
                    print(f"   {kind} {question}: {len(getattr(found, kind))} in all")
        shutil.rmtree(folder.parent)
    print(dict(tally))
    shutil.rmtree(place)


def _middle(whole: Path, partition: int) -> int:
    files = sorted((whole / f"__consumer_offsets-{partition}").glob("*.log"))
    return int(files[len(files) // 2].name.partition(".")[0])


def _touched(removal: Removal, count: int):
    def is_touched(group: str | None) -> bool:
        return removal.others or group is None or log_partition_of(group, count) in removal.partitions

    return is_touched


if __name__ == "__main__":
    main()
