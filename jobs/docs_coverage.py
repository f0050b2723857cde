"""The page ``coverage.md``: the protocol documents, section by section, against tests and commands.

Its source is ``docs/coverage.yaml``. Tests check that each test and each command in it exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

SOURCE: Final = Path(__file__).parent.parent / "docs" / "coverage.yaml"

INTRODUCTION: Final = """\
Each section of the protocol documents, with the tests that hold it against the product and the commands that answer
about it. Transcripts are sessions with the coordinator model; the tests of `tests/jobs/queries` put their logs through
the pipeline. What the documents work out by hand is on the page [worked examples](worked-examples.md).

Below the sections of a document are the capabilities that did not work, or worked in part, when the documents were
first held against the product line by line: 83 of 266; the other 183 worked. State `differs`: Kafka, or another part of
the document, says otherwise. State `open`: it is not done, for the reason given.
"""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DocumentSection(_Strict):
    """A section of a document."""

    section: str
    commands: list[str]
    tests: list[str]


class Capability(_Strict):
    """A capability that a document asks for, by its number."""

    row: int
    about: str
    state: Literal["done", "differs", "open"]
    commands: list[str] = []
    tests: list[str] = []
    why: str = ""


class ProtocolDocument(_Strict):
    """A protocol document."""

    document: str
    sections: list[DocumentSection]
    rows: list[Capability]


def documents() -> list[ProtocolDocument]:
    """Return what ``docs/coverage.yaml`` says."""
    given = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    return TypeAdapter(list[ProtocolDocument]).validate_python(given)


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield INTRODUCTION
    for each in documents():
        done = sum(1 for row in each.rows if row.state == "done")
        yield f"\n## {each.document}\n"
        yield "| Section | Commands | Tests |\n| --- | --- | --- |"
        for section in each.sections:
            yield f"| {section.section} | {_commands(section.commands)} | {_tests(section.tests)} |"
        yield f"\n{done} of {len(each.rows)} capabilities are done.\n"
        yield "| Row | Capability | State | Commands | Tests, or the reason |\n| --- | --- | --- | --- | --- |"
        for row in each.rows:
            proof = "; ".join(part for part in (_tests(row.tests), row.why) if part)
            yield f"| {row.row} | {row.about} | {row.state} | {_commands(row.commands)} | {proof} |"


def _commands(names: Sequence[str]) -> str:
    return ", ".join(f"[`{name}`](commands.md#{name})" for name in names)


def _tests(names: Sequence[str]) -> str:
    return ", ".join(f"`{name.removeprefix('data/transcripts/')}`" for name in names)
