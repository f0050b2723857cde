"""Change the SQL of relations in one place at a time, and say which changes no quick test finds.

    python -m tests.mutations [--only MODULE...] [--every N] [--begin K]

First all quick tests of ``ROOM`` that need no Spark run once, to see which files ask which texts of this process. Then
each change is tried in a process of its own, with the files that ask the changed text, the shortest first. Tests with a
list of mutations are left out: they look for the text as it is. A change that no test finds may be one that changes no
answer, such as a condition that another one implies; each is to be read.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import pickle
import re
import signal
import sys
import tokenize
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from threading import Timer
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest

import jobs.relations  # noqa: F401 - the package alone: its modules are imported by each process
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from tests.shared_data import ROOT

RELATIONS: Final = ROOT / "jobs" / "relations"
ROOM: Final = ROOT / "tests" / "jobs" / "relations"
IS_SQL: Final = re.compile(
    r"\b(SELECT|FROM|WHERE|AND|OVER|CASE|WHEN|JOIN|GROUP BY|ORDER BY|HAVING|coalesce)\b|:cluster"
)
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
    (r"(?<!PRECEDING) AND (?!:)", " OR "),
    (r" OR ", " AND "),
    (r"IS NOT NULL", "IS NULL"),
    (r"IS NULL", "IS NOT NULL"),
    (r"(?<!NOT) IN (?=[:('{])", " NOT IN "),
    (r" NOT IN ", " IN "),
    (r"NOT coalesce", "coalesce"),
    (r" DESC\b", ""),
    (r"LEFT JOIN", "JOIN"),
    (r"bool_or", "bool_and"),
    (r" [+-] 1\b", ""),
    (r"SELECT DISTINCT", "SELECT"),
)
OPTIONS: Final = ["-q", "-m", "not long and not spark", "-k", "not mutated", "-p", "no:cacheprovider", "-p", "no:xdist"]
SECONDS: Final = 1800
"""After so long a process with a change is ended, and the change counts as found: the tests would not end."""


class Mutation(NamedTuple):
    """One change in the source of a module of relations; ``part`` is the text around it, as readers are given it."""

    module: str
    line: int
    before: str
    after: str
    part: str
    source: str


class TestFile(NamedTuple):
    """A file of quick tests: how long it takes, and the texts that it asks of this process."""

    seconds: float
    path: str
    asked: set[str]


def strings(source: str) -> Iterator[tuple[int, int, int]]:
    """Yield where SQL stands in a source: first and last character, and its line. Docstrings are left out."""
    docs = {
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING and token.start[0] not in docs and IS_SQL.search(token.string):
            (first, column), (last, end) = token.start, token.end
            yield starts[first - 1] + column, starts[last - 1] + end, first


def mutations(path: Path) -> Iterator[Mutation]:
    """Yield all changes of a module."""
    source = path.read_text(encoding="utf-8")
    for begin, end, line in strings(source):
        text = source[begin:end]
        bounds = [match.end() for match in re.finditer(r'^[rfb]*("""|"|\')', text)]
        code = [match.span() for match in re.finditer(r"(?<!\{)\{[^{}]+\}(?!\})|\{+|\}+", text)]
        bounds += [*(at for span in code for at in span), len(text.rstrip("\"'"))]
        for pattern, after in CHANGES:
            for match in re.finditer(pattern, text):
                if any(first <= match.start() < last for first, last in code):
                    continue
                changed = source[: begin + match.start()] + after + source[begin + match.end() :]
                around = text[max(0, match.start() - 30) : match.end() + 30].replace("\n", " ")
                part = text[
                    max(at for at in bounds if at <= match.start()) : min(at for at in bounds if at >= match.end())
                ]
                yield Mutation(path.stem, line + text[: match.start()].count("\n"), around, after, part, changed)


class _Asked:
    """Notes the texts that each file of tests asks, and how long it takes."""

    def __init__(self) -> None:
        self.texts: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        self._path = ""

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._path = str(item.path)
        self.texts.setdefault(self._path, set())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[self._path] = self.seconds.get(self._path, 0) + report.duration

    def note(self, sql: str) -> None:
        self.texts.setdefault(self._path, set()).add(sql)


def asked_by_files() -> list[TestFile]:
    """Run the quick tests without a change, and return their files, the shortest first."""
    asked = _Asked()
    batches = FolderReader.batches

    def noted(reader: FolderReader, sql: str, **values: Value) -> Iterator[pa.RecordBatch]:
        asked.note(sql)
        return batches(reader, sql, **values)

    FolderReader.batches = noted  # type: ignore[method-assign]
    with redirect_stdout(io.StringIO()):
        code = pytest.main([*OPTIONS, str(ROOM)], plugins=[asked])
    if code != pytest.ExitCode.OK:
        raise SystemExit("the quick tests fail without a change")
    return sorted(TestFile(asked.seconds[path], path, texts) for path, texts in asked.texts.items() if path)


def in_child(run: Callable[[], object]) -> tuple[int, Any]:
    """Run a function in a process of its own, and return its exit code and what the function returned."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        code, result = 1, b""
        try:
            result = pickle.dumps(run())
            code = 0
        finally:
            with os.fdopen(send, "wb") as out:
                out.write(result)
            os._exit(code)
    os.close(send)
    timer = Timer(SECONDS, os.kill, (child, signal.SIGKILL))
    timer.start()
    with os.fdopen(receive, "rb") as read:
        result = read.read()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    return os.waitstatus_to_exitcode(status), pickle.loads(result) if result else None


def fails(mutation: Mutation, paths: list[str]) -> bool:
    """Return whether one of these files of tests fails with the change, in a process that did not import the module."""
    name = f"jobs.relations.{mutation.module}"
    spec = find_spec(name)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    exec(compile(mutation.source, f"{mutation.module}.py", "exec"), module.__dict__)
    setattr(sys.modules["jobs.relations"], mutation.module, module)
    return pytest.main(["-x", *OPTIONS, *paths]) != pytest.ExitCode.OK


def main() -> None:
    """Print a line for each change that was tried, and how many were found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", nargs="*", help="modules of jobs/relations; otherwise all")
    parser.add_argument("--every", type=int, default=1, help="try each Nth change")
    parser.add_argument("--begin", type=int, default=0, help="the first change to try")
    parser.add_argument("--asked", type=Path, help="where to keep which files ask which texts, for the next time")
    chosen = parser.parse_args()
    if chosen.asked is not None and chosen.asked.exists():
        files = pickle.loads(chosen.asked.read_bytes())
    else:
        code, files = in_child(asked_by_files)
        if code:
            raise SystemExit("the quick tests fail without a change")
        if chosen.asked is not None:
            chosen.asked.write_bytes(pickle.dumps(files))
    found = missed = 0
    sources = [path for path in sorted(RELATIONS.glob("*.py")) if not chosen.only or path.stem in chosen.only]
    for mutation in [change for path in sources for change in mutations(path)][chosen.begin :: chosen.every]:
        paths = [file.path for file in files if any(mutation.part in text for text in file.asked)]
        code, has_failed = in_child(partial(fails, mutation, paths)) if paths else (0, False)
        is_found = bool(code) or has_failed
        found, missed = found + is_found, missed + (not is_found)
        said = "found    " if is_found else "NOT FOUND" if paths else "NOT ASKED"
        where = f"{mutation.module}:{mutation.line}"
        print(f"{said} {where} [{mutation.after.strip()}] {mutation.before}", flush=True)
    print(f"{found} changes found by quick tests, {missed} not")


if __name__ == "__main__":
    main()
