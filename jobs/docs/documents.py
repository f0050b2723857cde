"""The page ``coverage.md``: the protocol documents, section by section, against tests and commands.

Its sources are ``docs/coverage.yaml``, for the limits ``docs/limits.yaml``, and for Kafka's own tests
``docs/kafka_tests.yaml``. Tests check that each test and each command in them exists.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

SOURCE: Final = Path(__file__).parents[2] / "docs" / "coverage.yaml"
LIMITS: Final = SOURCE.with_name("limits.yaml")
KAFKA_TESTS: Final = SOURCE.with_name("kafka_tests.yaml")

INTRODUCTION: Final = """\
Each section of the protocol documents, with the commands that answer about it and the tests that prove it. Tests are
below `tests`; `.txt` files are transcripts of sessions with [the model](model.md), which also says where a document
and Kafka differ. `tests/data/transcripts/worked-examples.md` has what the documents work out by hand, computed here,
and `docs/coverage.yaml` all capabilities that were compared, with their code and tests.
"""

LIMITS_INTRODUCTION: Final = """
## Limits

The tests that show each [limit](limits.md):
"""

KAFKA_INTRODUCTION: Final = """
## Kafka's own tests of its coordinator

How many of the questions that the tests of Kafka 4.3.1 ask of their classes the model is asked as well.
`docs/kafka_tests.yaml` has the tests, the questions that are left out, and why. `tests/broker/test_coordinator.py`
compares the answers with Kafka's own coordinator.

Three differences stay:

- Kafka answers Describe, List and OffsetFetch (without `requireStable`) from the last record that is committed; the
  model shows a change of memory without a record at once.
- Tombstones of several offsets: Kafka has the order of a hash map, the model that of the commits.
- Topics that do not exist: a broker refuses them before the coordinator sees the request (UNKNOWN_TOPIC_OR_PARTITION).
"""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DocumentSection(_Strict):
    """A section of a document."""

    section: str
    commands: list[str]
    tests: list[str]


class Addition(_Strict):
    """What the list of capabilities does not have: a question about the document, or a difference of Kafka from it."""

    about: str
    state: Literal["done", "differs", "open"]
    commands: list[str] = []
    code: list[str] = []
    tests: list[str] = []
    why: str = ""


class Capability(Addition):
    """A capability that a document asks for, by its number."""

    row: int


class ProtocolDocument(_Strict):
    """A protocol document."""

    document: str
    sections: list[DocumentSection]
    rows: list[Capability]
    beyond: list[Addition] = []


class LeftOut(_Strict):
    """Tests whose question the model is not asked."""

    tests: int
    why: str


class KafkaTestClass(_Strict):
    """One class of Kafka's own tests: how many there are, and how many of their questions the model is asked."""

    name: str
    about: str
    tests: int
    asked: int
    by: list[str]
    left_out: list[LeftOut] = []


def _read(file: Path) -> object:
    """Return what a YAML file has; the reader in C takes a tenth of the time, where it is installed."""
    return yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def kafka_tests() -> list[KafkaTestClass]:
    """Return what ``docs/kafka_tests.yaml`` says."""
    given = _read(KAFKA_TESTS)
    return TypeAdapter(list[KafkaTestClass]).validate_python(given)


def limits() -> dict[str, list[str]]:
    """Return what ``docs/limits.yaml`` says: tests by the anchor of a limit in ``docs/limits.md``."""
    given = _read(LIMITS)
    return TypeAdapter(dict[str, list[str]]).validate_python(given)


def documents() -> list[ProtocolDocument]:
    """Return what ``docs/coverage.yaml`` says."""
    given = _read(SOURCE)
    return TypeAdapter(list[ProtocolDocument]).validate_python(given)


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield INTRODUCTION
    for document in documents():
        yield f"\n## {document.document}\n"
        for section in document.sections:
            yield f"- **{section.section}**: {_commands(section.commands)}; {_tests(section.tests)}"
    yield LIMITS_INTRODUCTION
    for anchor, tests in limits().items():
        yield f"- [{anchor}](limits.md#{anchor}): {_tests(tests)}"
    yield KAFKA_INTRODUCTION
    for kafka in kafka_tests():
        yield f"- `{kafka.name}`: {kafka.asked} of {kafka.tests}"


def _commands(names: Sequence[str]) -> str:
    return ", ".join(f"[{name}](commands.md#{name})" for name in names)


def _tests(names: Sequence[str]) -> str:
    return ", ".join(f"`{name.removeprefix('data/transcripts/')}`" for name in names)
