"""Which quick tests fail when a text is changed in one place: a plugin of pytest that runs the tests many times.

The tests are collected once. Those of a file run in a child of the process that collected them: unchanged first, which
says what texts each test asks, then those that ask a text again for each change of it. What is set up for a whole file
stays as it was without a change, as setting it up takes most of the time. There is no Spark: tests of relations that
hold both engines against each other and against what is expected hold DataFusion against it alone.
"""

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, NamedTuple
from unittest.mock import Mock, patch

import pytest

from jobs.tables import session
from jobs.tables.folder_reader import FolderReader
from tests.conftest import uses_spark
from tests.jobs.relations import engines
from tests.mutations.changes import asked_through, with_place_changed
from tests.shared_data import ROOT

RELATIONS: Final = "tests/jobs/relations/"
OPTIONS: Final = ("-m", "not long", "-k", "not mutated", "-p", "no:cacheprovider", "-qq", "--no-header")
"""The tests that change texts themselves say nothing of a text that is changed already."""


def without_spark() -> ExitStack:
    """Let tests of both engines ask DataFusion twice; others that want Spark fail."""
    stack = ExitStack()
    stack.enter_context(patch.object(session, "get_or_create", Mock(spec=["stop"])))
    stack.enter_context(patch.object(engines, "through_spark", lambda spark, home: FolderReader(str(home))))
    return stack


def asking_module() -> str:
    """The module that asks the text that an engine is about to get; it is of the tests if no module of jobs asks it."""
    frame, module = sys._getframe(1), ""
    while frame := frame.f_back:  # type: ignore[assignment]
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("jobs.") and not name.startswith("jobs.tables."):
            return name
        if name.startswith("tests.jobs."):
            module = module or name
    return module


class Seen(NamedTuple):
    """What a child says: a text and the module that asks it, or a place and the test that shows its change."""

    kind: Literal["asked", "shown"]
    what: str
    by: str


def from_child(work: Callable[[], Iterator[Seen]]) -> Iterator[Seen]:
    """Yield what a child of this process yields."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(theirs, "w", encoding="utf-8") as answer:
            for seen in work():
                print(json.dumps(seen), file=answer, flush=True)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, encoding="utf-8") as answer:
        yield from (Seen(*json.loads(line)) for line in answer)
    os.waitpid(child, 0)


class QuickTests:
    """Finds which test fails under each change.

    ``paths``: where the tests are. ``changes``: the places of a text, asked by a module, whose changes nothing shows
    yet. ``note`` is given what is seen. Each change gets no more than ``limit`` seconds of a file's tests.
    """

    def __init__(
        self, paths: list[str], changes: Callable[[str, str], Iterable[str]], note: Callable[[Seen], None], limit: float
    ) -> None:
        self.paths, self._changes, self._note, self._limit = paths, changes, note, limit
        self._seconds: dict[str, float] = defaultdict(float)
        self._shown = Counter[str]()
        self._failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not uses_spark(item) or item.nodeid.startswith(RELATIONS)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # What a child prints of its tests is of no use.
        session.config.pluginmanager.unregister(name="terminalreporter")
        of_file: dict[Path, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            of_file[item.path].append(item)
        below = (path for given in self.paths for path in of_file if path.is_relative_to(ROOT / given))
        for path in dict.fromkeys(below):
            for seen in from_child(partial(self._of_file, of_file[path])):
                self._note(seen)
        return True

    def _of_file(self, items: list[pytest.Item]) -> Iterator[Seen]:
        with without_spark():
            asking: dict[str, list[pytest.Item]] = defaultdict(list)
            for item, texts in self._asked_by(items):
                for sql, module in texts:
                    yield Seen("asked", sql, module)
                    for place in self._changes(sql, module):
                        asking[place].append(item)
            shown: dict[str, str] = {}
            for place, of_place in asking.items():
                if (test := self._shown_by(place, sorted(dict.fromkeys(of_place), key=self._cost))) is not None:
                    shown[place] = test
            # A test that now fails without a change has kept something of one: what it showed is not known.
            broken = {item.nodeid for item in items if item.nodeid in {*shown.values()} and self._fails(item)}
            yield from (Seen("shown", place, test) for place, test in shown.items() if test not in broken)

    def _asked_by(self, items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, list[tuple[str, str]]]]:
        """Yield each test and the texts that it asks; not those that fail unchanged."""
        for item in items:
            noted: dict[tuple[str, str], None] = {}

            def note(sql: str, noted: dict[tuple[str, str], None] = noted) -> str:
                noted[sql, asking_module()] = None
                return sql

            with asked_through(note):
                if not self._fails(item):
                    yield item, [*noted]

    def _shown_by(self, place: str, items: list[pytest.Item]) -> str | None:
        """Return the first test that fails under a change."""
        until = time.monotonic() + self._limit
        for item in items:
            with asked_through(with_place_changed(place)):
                failed = self._fails(item)
            if failed:
                self._shown[item.nodeid] += 1
                return item.nodeid
            if time.monotonic() > until:
                break
        return None

    def _cost(self, item: pytest.Item) -> float:
        """The seconds that a test has taken for each change that it has shown so far."""
        return self._seconds[item.nodeid] / (1 + self._shown[item.nodeid])

    def _fails(self, item: pytest.Item) -> bool:
        """Run a test, and leave what is set up for its file."""
        self._failed.discard(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=item.getparent(pytest.Module))
        return item.nodeid in self._failed


def run(quick_tests: QuickTests) -> None:
    """Collect the quick tests, and let the plugin run them: a path after the other, as pytest has its own order."""
    os.chdir(ROOT)
    with TemporaryDirectory() as folder:
        pytest.main([*quick_tests.paths, *OPTIONS, "--basetemp", str(Path(folder) / "tests")], plugins=[quick_tests])
