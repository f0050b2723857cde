"""``--quiet``, ``--json`` and messages on standard error, for all commands."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobs.formatting import visible
from jobs.secret_values import redacted

EVERY_S = 60.0
"""How often a structured log says that a step still runs."""


class LogFormat(StrEnum):
    """Format of messages: lines for people, or JSON objects for a log collector."""

    TEXT = "text"
    JSON = "json"


@dataclass(slots=True)
class Console:
    """Prints the messages of a command to standard error; results go to standard output.

    ``logged``: facts that every line of a structured log repeats.
    """

    quiet: bool = False
    json: bool = False
    log_format: LogFormat = LogFormat.TEXT
    logged: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Any) -> "Console":
        """Return the console of this run, which has the options given before and after the command's name."""
        root = context.find_root()
        if root.obj is None:
            root.obj = cls()
        console: Console = root.obj
        return console

    def note(self, message: str, **facts: object) -> None:
        """Print information, unless ``--quiet`` is set; ``facts`` say the same for programs."""
        if not self.quiet:
            self._say("note", message, facts)

    def warn(self, message: str, **facts: object) -> None:
        """Print a warning, also with ``--quiet``."""
        self._say("warning", message, facts)

    def error(self, error: Exception | str) -> None:
        """Print in one line why the command failed."""
        facts = {name: getattr(error, name, None) for name in ("file", "position", "cause")}
        facts = {name: value for name, value in facts.items() if value not in (None, "", -1)}
        if isinstance(error, Exception):
            facts["kind"] = type(error).__name__
        self._say("error", str(error), facts)

    @contextmanager
    def progress(self, total: int, label: str) -> Iterator[Callable[[int], None]]:
        """Show a progress bar on standard error. Yields a function to call with each amount that is done of ``total``.

        No bar is shown with ``--quiet`` or ``--json``, without a terminal, or if results go to the same terminal.
        """
        if self.quiet or self._is_for_machines or not sys.stderr.isatty() or sys.stdout.isatty():
            yield lambda done: None
            return
        from rich.console import Console as Terminal
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(label), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.advance(task, done)

    @contextmanager
    def step(self, activity: str, **progress: object) -> Iterator[None]:
        """Show an activity while it lasts: on a terminal what runs, otherwise a line; nothing with ``--quiet``.

        ``progress``, each where it is known: ``step`` (name), ``number`` of ``steps``, ``records`` that the night has
        taken in, ``seconds_left`` until its end. On a terminal they are a line that changes. A structured log has them
        as fields when the step begins, and again each minute, with ``seconds`` since then.
        """
        known = {name: value for name, value in progress.items() if value is not None}
        if self.quiet or not sys.stderr.isatty() or self._is_for_machines:
            self.note(activity, **known)
            with self._repeated(activity, known) if known and self._is_for_machines else nullcontext():
                yield
            return
        from jobs.cli.step_line import step_line

        with step_line(activity, known):
            yield

    @contextmanager
    def _repeated(self, activity: str, known: dict[str, Any]) -> Iterator[None]:
        """Say each minute that a step still runs."""
        ended, began = threading.Event(), time.monotonic()

        def repeat() -> None:
            while not ended.wait(EVERY_S):
                seconds = round(time.monotonic() - began, 3)
                left = known.get("seconds_left")
                more = {} if left is None else {"seconds_left": max(0.0, round(left - seconds, 3))}
                self.note(f"still {activity}", **{**known, **more, "seconds": seconds})

        thread = threading.Thread(target=repeat, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @property
    def shows_progress(self) -> bool:
        """Whether anybody sees the progress of a step: on a terminal, or in a structured log."""
        return not self.quiet and (self._is_for_machines or sys.stderr.isatty())

    @property
    def _is_for_machines(self) -> bool:
        return self.json or self.log_format is LogFormat.JSON

    def _say(self, level: str, message: str, facts: dict[str, object]) -> None:
        message = redacted(message)
        facts = {name: redacted(value) if isinstance(value, str) else value for name, value in facts.items()}
        if self.log_format is LogFormat.JSON:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = json.dumps({"time": now, "level": level, "message": message, **self.logged, **facts})
        elif self.json:
            line = json.dumps({level: message, **facts})
        else:
            line = f"{level}: {visible(' '.join(message.split()))}"
        print(line, file=sys.stderr, flush=True)


def _set(name: str) -> object:
    def callback(context: typer.Context, value: bool) -> bool:
        console = Console.of(context)
        # The option may stand before the command's name or behind it: the one that is not given takes nothing back.
        setattr(console, name, value or getattr(console, name))
        return bool(getattr(console, name))

    return callback


QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_set("quiet"), help="Print only results, warnings and errors.")
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", callback=_set("json"), help="Print results and messages as JSON objects, one per line."),
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
        help="Format of messages: text, or JSON objects with a time.",
    ),
]
