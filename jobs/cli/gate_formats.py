"""What a gate looked at, in the forms that CI systems read: JUnit XML, and annotations of GitHub Actions."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import typer

from coordinator_core.audit.finding_rows import Level
from jobs.formatting import visible


class GateFormat(StrEnum):
    """How a gate prints what it looked at."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"


FormatOption = Annotated[
    GateFormat,
    typer.Option(
        "--format",
        help="Form of the output: text, json (one object a line, as --json), junit (XML, in which what the gate counts "
        "fails), or github (annotations of GitHub Actions).",
    ),
]

COMMANDS: Final = {Level.ALARM: "warning", Level.WARNING: "warning", Level.NOTICE: "notice"}
"""GitHub's word for what does not fail the gate; what does is an error."""


class GateLine(NamedTuple):
    """One thing that a gate looked at: what it is, about what, what was found (None: it passed), whether it fails."""

    name: str
    about: str
    message: str | None
    level: Level
    fails: bool


def print_ci(form: GateFormat, suite: str, lines: Sequence[GateLine]) -> None:
    """Print what a gate looked at as JUnit XML, or as annotations of GitHub Actions."""
    print(_junit(suite, lines) if form is GateFormat.JUNIT else "\n".join(map(_annotation, filter(_message, lines))))


def _message(line: GateLine) -> str | None:
    return line.message


def _annotation(line: GateLine) -> str:
    command = "error" if line.fails else COMMANDS[line.level]
    title = f"{line.name}: {line.about}" if line.about else line.name
    return f"::{command} title={_escaped(title, ':,')}::{_escaped(line.message or '')}"


def _escaped(text: str, more: str = "") -> str:
    """Return a text of a workflow command; a title may not hold what ends it either."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return visible(text)


def _junit(suite: str, lines: Sequence[GateLine]) -> str:
    failures = sum(line.fails for line in lines)
    head = f"<testsuite name={quoteattr(suite)} tests={quoteattr(str(len(lines)))} failures={quoteattr(str(failures))}>"
    cases = "".join(_case(suite, line) for line in lines)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{cases}</testsuite>\n</testsuites>'


def _case(suite: str, line: GateLine) -> str:
    case = (
        f"<testcase classname={quoteattr(_xml(f'{suite}.{line.name}'))} name={quoteattr(_xml(line.about or line.name))}"
    )
    if line.message is None:
        return f"{case}/>\n"
    if line.fails:
        inner = f"<failure type={quoteattr(line.level)} message={quoteattr(_xml(line.message))}/>"
    else:
        inner = f"<system-out>{escape(_xml(f'{line.level}: {line.message}'))}</system-out>"
    return f"{case}>{inner}</testcase>\n"


def _xml(text: str) -> str:
    """Return a text without the characters that XML does not allow: they become their escapes."""
    allowed = (c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000" for c in text)
    return "".join(c if is_allowed else ascii(c)[1:-1] for c, is_allowed in zip(text, allowed, strict=True))
