"""Make the claims of the page of coverage false, one at a time, and say which of its tests do not notice.

    python -m tests.claims [--rows COUNT] [--seed NUMBER] [--flips COUNT] [--only TEXT]

A row that is done names its tests, and in ``code`` what of the product does what it claims. The seed chooses rows, and
in the code of each so many places that its tests run: a comparison says the contrary, a number is another one, a result
or a call is left out. Besides, each function gives nothing. Each change is made in a copy of the project, and the tests
of the row are run there: a row is shown if they fail after every change. Printed is a line for each row, and below it
each change that they do not notice.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

import jobs.cli.app  # noqa: F401 - for what it imports of others
import tests.conftest  # noqa: F401
from jobs.docs.documents import Addition, Capability, documents
from tests.claims.flips import GONE, Flip, flips
from tests.shared_data import ROOT, SHARED

TRANSCRIPT: Final = "core/coordinator/test_transcripts.py::test_transcript"
Row = Capability | Addition

LIMIT_S: Final = 300
"""Tests that take longer after a change have noticed it: they do not end."""
OWN: Final = frozenset(("coordinator_audit", "coordinator_core", "jobs", "tests"))
OPTIONS: Final = ("-x", "-p", "no:cacheprovider", "-m", "not long")


class Copy:
    """A copy of the project in a folder, in which files are changed and tests are run."""

    def __init__(self, folder: Path) -> None:
        self.root, self._folder, self._times = folder / ROOT.name, folder, count(2_000_000_000)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        if SHARED.is_dir():
            (folder / SHARED.name).symlink_to(SHARED.resolve())

    def run(self, tests: list[str], *more: str, **environment: str) -> bool:
        """Return whether tests pass; they do not if all of them are left out.

        They run in a child that has the packages of others, and imports those of the copy.
        """
        output = self._folder / "output.txt"
        if (child := os.fork()) == 0:
            os.environ |= {"PYTHONPATH": str(self.root), **environment}
            for number in (1, 2):
                os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if number == 1 else 0)), number)
            os.chdir(self.root)
            for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
                del sys.modules[name]
            sys.path[:] = [str(self.root), *(path for path in sys.path if Path(path).resolve() != ROOT)]
            os._exit(pytest.main([*OPTIONS, *more, *tests]))
        until = time.monotonic() + LIMIT_S
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return False
            time.sleep(0.05)
        return ended[1] == 0 and " passed" in output.read_text("utf-8", "replace")

    def reached(self, tests: list[str], files: list[str]) -> dict[str, set[int]] | None:
        """The lines of files that tests run, by file; None: they do not pass."""
        answer, paths = self._folder / "reached.json", {str(self.root / name): name for name in files}
        names = {"CLAIMS_FILES": os.pathsep.join(paths), "CLAIMS_REACHED": str(answer)}
        if not self.run(tests, "-p", "tests.claims.reached", **names):
            return None
        found = json.loads(answer.read_text("utf-8"))
        return {name: set(found.get(path, [])) for path, name in paths.items()}

    def write(self, file: str, text: str) -> None:
        """Write a file so that Python compiles it again, whenever it was compiled before."""
        (self.root / file).write_text(text, encoding="utf-8")
        os.utime(self.root / file, (at := next(self._times), at))


def node(test: str) -> str:
    """A test of a row as pytest names it."""
    path, _, function = test.partition("::")
    return f"tests/{test}" if function else f"tests/{TRANSCRIPT}[{Path(path).stem}]"


def chosen(
    row: Row, reached: dict[str, set[int]], copy: Copy, most: int, by: random.Random
) -> Iterator[tuple[str, Flip]]:
    """Yield the changes of a row, each with its file."""
    found = []
    for named in row.code:
        file, _, symbol = named.partition("::")
        found += [(file, each) for each in flips((copy.root / file).read_text("utf-8"), symbol, reached[file])]
    gone, others = ([pair for pair in found if (pair[1].change == GONE) is it] for it in (True, False))
    yield from gone
    yield from by.sample(others, min(most, len(others)))


def judged(row: Row, copy: Copy, most: int, by: random.Random) -> tuple[int, list[str]]:
    """Return how many changes were made, and those that the row's tests do not notice."""
    tests, files = [node(test) for test in row.tests], [*dict.fromkeys(each.partition("::")[0] for each in row.code)]
    if (reached := copy.reached(tests, files)) is None:
        return 0, ["its tests do not pass as they are, or need what is not here"]
    changes, missed = list(chosen(row, reached, copy, most, by)), []
    for file, flip in changes:
        before = (copy.root / file).read_text("utf-8")
        copy.write(file, flip.text)
        if copy.run(tests):
            missed.append(f"{file}:{flip.line}: {flip.change}")
        copy.write(file, before)
    return len(changes), missed if changes else ["its tests run none of its code"]


def main() -> None:
    """Print which rows are shown, and what their tests do not notice."""
    parser = argparse.ArgumentParser(prog="python -m tests.claims")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int, default=2)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    by = random.Random(given.seed)
    rows = [(each.document, row) for each in documents() for row in (*each.rows, *each.beyond)]
    rows = [(name, row) for name, row in rows if row.state == "done" and given.only in row.about]
    total = shown = 0
    with TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for name, row in by.sample(rows, min(given.rows, len(rows))):
            number, missed = judged(row, copy, given.flips, by)
            total, shown = total + 1, shown + (not missed)
            print(f"{'NOT SHOWN' if missed else 'shown'}: {name}: {row.about}: {number} changes", flush=True)
            print(*(f"    {each}\n" for each in missed), sep="", end="", flush=True)
    print(f"{shown} of {total} rows are shown")


if __name__ == "__main__":
    main()
