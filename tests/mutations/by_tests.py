"""Which quick tests fail when a text is changed in one place: a plugin of pytest that runs the tests many times.

The tests are collected once. Each run is a child of the process that collected them, and has what that imported. There
is no Spark. Tests of relations that hold both engines against each other and against what is expected hold DataFusion
against it alone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
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
HOUR: Final = 3600.0


class Asked(NamedTuple):
    """The texts that a test asks, those of its fixtures too, and the seconds that it takes alone."""

    seconds: float
    texts: list[tuple[str, str]]
    """Each with the module that asks it."""


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


def in_child(work: Callable[[], Any], seconds: float) -> Any:
    """Return what a child of this process makes, as JSON; None: it took longer."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        with os.fdopen(theirs, "w", encoding="utf-8") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(theirs)
    until, parts = time.monotonic() + seconds, list[bytes]()
    with os.fdopen(ours, "rb", buffering=0) as answer:
        while select.select([answer], [], [], max(0.0, until - time.monotonic()))[0] and (part := answer.read(1 << 20)):
            parts.append(part)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return json.loads(b"".join(parts))
    except ValueError:
        return None


class QuickTests:
    """Finds what each test asks, and then which test fails under each change that ``look_for`` yields.

    ``look_for`` is given what each test asks, and yields places and the tests to run; ``shown`` is given each place and
    the test that shows its change.
    """

    def __init__(
        self,
        look_for: Callable[[Mapping[str, Asked]], Iterator[tuple[str, Iterable[str]]]],
        shown: Callable[[str, str | None], None],
        limit: float,
    ) -> None:
        self._look_for, self._shown, self._limit = look_for, shown, limit
        self._noted: set[tuple[str, str]] = set()
        self._of_fixture: dict[str, tuple[float, set[tuple[str, str]]]] = {}
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not uses_spark(item) or item.nodeid.startswith(RELATIONS)]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        outer, self._noted, begun = self._noted, set(), time.monotonic()
        try:
            return (yield)
        finally:
            self._of_fixture[fixturedef.argname] = time.monotonic() - begun, self._noted
            self._noted = outer | self._noted

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration if report.when == "call" else 0
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # What a child prints of its tests is of no use.
        session.config.pluginmanager.unregister(name="terminalreporter")
        asked = in_child(partial(self._list, session), HOUR)
        items = {item.nodeid: item for item in session.items}
        for place, names in self._look_for({name: Asked(*of_test) for name, of_test in asked.items()}):
            chosen = [items[name] for name in names]
            self._shown(place, in_child(partial(self._first_failed, chosen, place), self._limit))
        return True

    def _list(self, session: pytest.Session) -> dict[str, Asked]:
        """What each test asks; not of those that fail unchanged."""
        found = {}

        def note(sql: str) -> str:
            self._noted.add((sql, asking_module()))
            return sql

        with asked_through(note), without_spark():
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                self._noted = set()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                fixtures = [
                    self._of_fixture[name] for name in getattr(item, "fixturenames", ()) if name in self._of_fixture
                ]
                seconds = self._seconds[item.nodeid] + sum(of_fixture for of_fixture, _ in fixtures)
                found[item.nodeid] = Asked(seconds, sorted(self._noted.union(*(texts for _, texts in fixtures))))
        return {name: asked for name, asked in found.items() if asked.texts and name not in self._failed}

    def _first_failed(self, items: list[pytest.Item], place: str) -> str:
        """The first test that fails; an empty name: none does."""
        with asked_through(with_place_changed(place)), without_spark():
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    return self._failed[0]
        return ""


def run(quick_tests: QuickTests, path: str) -> None:
    """Collect the quick tests below a path, and let the plugin run them."""
    os.chdir(ROOT)
    with TemporaryDirectory() as folder:
        pytest.main([path, *OPTIONS, "--basetemp", str(Path(folder) / "tests")], plugins=[quick_tests])
