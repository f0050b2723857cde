"""The line of a terminal that shows what runs: a spinner, the step, records, how long it has run, what is left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console as Terminal
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text


class Times(ProgressColumn):
    """How long the step has run, and about how long the night will still take."""

    def render(self, task: Task) -> Text:
        """Return the column."""
        return Text(times_text(task.elapsed or 0.0, task.fields.get("seconds_left")))


def times_text(elapsed: float, left: float | None) -> str:
    """Return the times of a step after so many seconds; ``left``: seconds of the night as the step began."""
    text = clock(elapsed)
    if left is None:
        return text
    return f"{text}, about {clock(left - elapsed)} left" if left > elapsed else f"{text}, longer than the last night"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def description(activity: str, known: Mapping[str, object]) -> str:
    """Return what runs: its place among the steps, what it does, and the records of the night."""
    place = f"step {known['number']} of {known['steps']}: " if {"number", "steps"} <= set(known) else ""
    records = f", {known['records']:,} records" if "records" in known else ""
    return f"{place}{activity}{records}"


@contextmanager
def step_line(activity: str, known: Mapping[str, object]) -> Iterator[None]:
    """Show a step on standard error while it runs; the line is gone afterwards."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), Times())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as shown:
        shown.add_task(description(activity, known), total=None, seconds_left=known.get("seconds_left"))
        yield
