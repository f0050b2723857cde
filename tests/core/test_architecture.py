"""The page on architecture: its drawing is what is imported, and the files and folders that it names are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOPS = ("coordinator_core", "jobs")
PACKAGES = {
    f"{top}.{folder.name}" for top in TOPS for folder in (ROOT / top).iterdir() if (folder / "__init__.py").exists()
}
PATHS = {
    str(path.relative_to(ROOT))
    for top in ("coordinator_audit", *TOPS, "schemas", "conf")
    for path in (ROOT / top, *(ROOT / top).rglob("*"))
}
IMPORT = re.compile(r"^ *from ([\w.]+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
CHANGES = (
    "a new record version",
    "a new assignor",
    "wording of a finding",
    "how a group is described",
    "who owned what",
    "a rule about two owners",
    "form of stored state",
    "the summary of commits",
    "lag of a partition over time",
    "an option for all questions",
    "colour of a chart",
    "a new check",
    "another codec",
    "the threshold of a check",
    "a duplicated record",
    "which release's rules",
    "a new cause",
    "retries of a Delta conflict",
    "exit code of a gate",
    "what a snapshot stores",
)


def paths_named(text: str) -> list[str]:
    return [name for name in re.findall(r"`([\w./<>]+)`", text) if "/" in name or name.endswith(".py")]


def is_there(name: str) -> bool:
    path = name.rstrip("/").replace("<type>", "consumer")
    return any(known == path or known.endswith(f"/{path}") for known in PATHS)


def test_what_the_page_names_is_there() -> None:
    named = paths_named(PAGE)
    assert len(named) > 30
    assert [name for name in named if not is_there(name)] == []


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_says_where_to_make_a_change(change: str) -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| ") and change in line]
    places = [place for subject, place in rows if change in subject]
    assert len(places) == 1
    assert paths_named(places[0]) != []


def drawn() -> tuple[set[str], set[tuple[str, str]]]:
    """The nodes and the arrows of the drawing of packages, by name of their modules."""
    drawing = PAGE.split("```mermaid\n", 1)[1].split("```", 1)[0]
    nodes: dict[str, str] = {}
    arrows = []
    top = ""
    for line in drawing.splitlines():
        if starts := re.match(r" *subgraph \w+ \[(\w+):", line):
            top = starts[1]
        elif line.strip() == "end":
            top = ""
        elif arrow := re.match(r' *(\w+)(?:\[".*?"\])? --> (\w+)', line):
            if top:
                nodes |= dict.fromkeys(arrow.groups(), top)
                arrows.append(arrow.groups())
            else:
                assert arrow.groups() == ("jobs", "core")
    modules = {node: f"{top}.{node}" for node, top in nodes.items()}
    return set(modules.values()), {(modules[start], modules[end]) for start, end in arrows}


def imports_of(path: Path) -> Iterator[str]:
    for module, several, one in IMPORT.findall(path.read_text(encoding="utf-8")):
        yield from (f"{module}.{name.split()[0]}" for name in (several or one).split(",") if name.strip())


def imported(nodes: set[str]) -> set[tuple[str, str]]:
    """The imports between nodes, each once."""
    pairs = set()
    for node in nodes:
        place = ROOT / node.replace(".", "/")
        for path in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
            pairs |= {(node, ".".join(name.split(".")[:2])) for name in imports_of(path)}
    return {(start, end) for start, end in pairs if start != end and end in nodes}


def reached(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """All pairs of nodes of which the second can be reached from the first."""
    pairs = set(arrows)
    while more := {(start, last) for start, end in pairs for first, last in arrows if first == end} - pairs:
        pairs |= more
    return pairs


def test_each_package_is_drawn() -> None:
    assert PACKAGES - drawn()[0] == set()


def test_the_drawing_is_what_is_imported() -> None:
    nodes, arrows = drawn()
    found = imported(nodes)
    assert len(found) > len(arrows) > 15
    of_jobs = {node for node in nodes if node.startswith("jobs.")}
    jobs_to_core = {(start, end) for start in of_jobs for end in nodes - of_jobs}
    assert found - reached(arrows) - jobs_to_core == set()
    assert arrows - found == set()


COLUMNS_OF_SPARK = {
    "jobs/pipeline/on_spark/arrived.py": "typed tables",
    "jobs/pipeline/on_spark/commits.py": "the commit pass",
    "jobs/pipeline/on_spark/ingest.py": "ingest",
    "jobs/sources/in_spark.py": "ingest",
    "jobs/sources/kafka_columns.py": "ingest",
    "jobs/tables/spark_reader.py": "the engine",
}
"""The modules that compute with columns of Spark, and why a text that both engines know does not do it there."""


def test_only_these_modules_compute_with_columns_of_spark() -> None:
    """A relation is a text for both engines: a new twin in columns of Spark would come apart from it."""
    functions = re.compile(r"pyspark\.sql import (functions|.*\bfunctions\b)|pyspark\.sql\.functions")
    modules = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "jobs").rglob("*.py")
        if functions.search(path.read_text(encoding="utf-8"))
    }
    assert modules == set(COLUMNS_OF_SPARK)
