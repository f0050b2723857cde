"""What every command shares: ``--quiet``, ``--json``, messages on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer


class LogFormat(StrEnum):
    """What messages look like: lines for people, or JSON objects for a log collector."""

    TEXT = "text"
    JSON = "json"


@dataclass(slots=True)
class Console:
    """How this run talks to its caller. Results go to standard output, everything said here to standard error.

    ``logged`` are facts that every line of a structured log repeats.
    """

    quiet: bool = False
    json: bool = False
    log_format: LogFormat = LogFormat.TEXT
    logged: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Any) -> Console:
        """The console of this run; options given before or after the command's name end up in the same one."""
        root = context.find_root()
        if root.obj is None:
            root.obj = cls()
        console: Console = root.obj
        return console

    def note(self, message: str, **facts: Any) -> None:
        """Something worth knowing that is no failure; ``facts`` are the machine's form of it."""
        if not self.quiet:
            self._say("note", message, facts)

    def warn(self, message: str, **facts: Any) -> None:
        """Something that was skipped or set aside; said even with ``--quiet``."""
        self._say("warning", message, facts)

    def error(self, error: Exception | str) -> None:
        """The one line that tells why the command failed."""
        facts = {name: getattr(error, name, None) for name in ("file", "position", "cause")}
        facts = {name: value for name, value in facts.items() if value not in (None, "", -1)}
        if isinstance(error, Exception):
            facts["kind"] = type(error).__name__
        self._say("error", str(error), facts)

    @contextmanager
    def progress(self, total: int, what: str) -> Iterator[Callable[[int], None]]:
        """A bar on standard error for long work; call what it gives with every amount done of ``total``.

        There is none with ``--quiet`` or ``--json``, where nobody looks at it, or where results scroll by beside it.
        """
        if self.quiet or self._is_for_machines or not sys.stderr.isatty() or sys.stdout.isatty():
            yield lambda done: None
            return
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Says what goes on while it does: a spinner on a terminal, a line elsewhere, nothing with ``--quiet``."""
        if self.quiet or self._is_for_machines or not sys.stderr.isatty():
            self.note(what)
            yield
            return
        from rich.console import Console as Terminal

        with Terminal(stderr=True).status(what):
            yield

    @property
    def _is_for_machines(self) -> bool:
        return self.json or self.log_format is LogFormat.JSON

    def _say(self, level: str, message: str, facts: dict[str, Any]) -> None:
        if self.log_format is LogFormat.JSON:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": now, "level": level, "message": message, **self.logged, **facts})
        elif self.json:
            line = json.dumps({level: message, **facts})
        else:
            line = f"{level}: {' '.join(message.split())}"
        print(line, file=sys.stderr, flush=True)


def _set(name: str) -> Any:
    def callback(context: typer.Context, value: bool) -> bool:
        console = Console.of(context)
        setattr(console, name, value or getattr(console, name))
        return bool(getattr(console, name))

    return callback


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", callback=_set("quiet"), help="Only results and errors.")]
JsonOption = Annotated[
    bool, typer.Option("--json", callback=_set("json"), help="Results and messages as JSON objects, one a line.")
]


def _set_log_format(context: typer.Context, value: LogFormat) -> LogFormat:
    Console.of(context).log_format = value
    return value


LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        metavar="|".join(LogFormat),
        callback=_set_log_format,
        help="Messages as text, or as JSON objects with a time.",
    ),
]
