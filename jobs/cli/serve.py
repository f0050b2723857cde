"""``serve``: the page over HTTP, from log files or from the tables; with a watch beside it, live."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn, cast

import typer

from coordinator_core.errors import CoordinatorAuditError, UsageError
from jobs.cli.answer_source import AnswerSource
from jobs.cli.console import Console
from jobs.cli.options import EndsOption, with_options
from jobs.cli.report import report_of_logs
from jobs.queries.from_logs.given import require_log_of_groups
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.group_times import GroupTimes, lags_by_group
from jobs.serve.guard import Guard, is_local
from jobs.serve.live import Live
from jobs.serve.newer import NOTHING_NEWER, Newer, history_with_newer
from jobs.serve.server import served
from jobs.serve.site import ServedPlace, Site
from jobs.settings import Settings
from jobs.sources.end_offsets import all_ends, newest_ends

if TYPE_CHECKING:
    from coordinator_core.audit.folds.group_history import GroupHistory
    from jobs.cli.watch import Watch

LOCALHOST: Final = "127.0.0.1"
PORT: Final = 8848
MOST_PORT: Final = 65_535
NEWS_S: Final = 1.0
"""How often it looks whether something is new, while a page follows."""


@with_options(AnswerSource)
def serve_command(
    source: AnswerSource,
    port: Annotated[
        int, typer.Option("--port", min=0, max=MOST_PORT, help="Port to listen at; 0: any that is free.")
    ] = PORT,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Address to listen at. One that other machines reach needs a token."
        ),
    ] = LOCALHOST,
    watch: Annotated[
        str | None,
        typer.Option(
            "--watch", metavar="kafka://HOST:PORT", help="Follow this cluster, or a folder whose segments grow, too."
        ),
    ] = None,
    ends: EndsOption = None,
) -> None:
    """Serve the page: all groups at a moment, a window of a group, two moments side by side, a search, live rows.

    It listens at 127.0.0.1 and only reads. Stop it with Ctrl-C.
    """
    source = source.checked()
    console, guard = source.console, Guard.of(host)
    with ExitStack() as stack:
        following = None if watch is None else stack.enter_context(closing(ServedWatch(watch, source)))
        live = None if following is None else following.live
        place = place_of(source, ends, NOTHING_NEWER if following is None else following.newer())
        with console.step("counting what is there"):
            # Before the address is printed: who opens it would have to wait as long.
            place.overview()
        site = Site(place, is_live=live is not None)
        bound = stack.enter_context(served(host, port, site, guard, live))
        shown = f"[{host}]" if ":" in host else host
        token = "" if guard.token is None else f"?token={guard.token}"
        typer.echo(f"http://{shown}:{bound}/{token}")
        if not is_local(host):
            console.warn("other machines reach this address, and HTTP is not encrypted: who reads it has the token")
        try:
            _tell_news(place, live)
        except KeyboardInterrupt:
            console.note("stopped")


def _tell_news(place: ServedPlace, live: Live | None) -> NoReturn:
    """Tell the pages that follow when the place answers with more than before."""
    known = None if live is None else place.renew()
    while True:
        time.sleep(NEWS_S)
        if live is not None and live.is_followed and (newest := place.renew()) != known:
            known = newest
            live.announce_news()


def place_of(source: AnswerSource, ends: Path | None, newer: Newer) -> ServedPlace:
    """Return the place that answers, with what a watch reads beyond it."""
    if source.tables is None:
        return _log_place(source, ends, newer)
    if ends is not None:
        raise UsageError("--end-offsets needs --log: for tables, give the end offsets to `replay --end-offsets`")
    from jobs.cli.stored_source import open_reader
    from jobs.serve.from_tables import ServedTables

    _, chosen = source.stored()
    return ServedTables(partial(open_reader, SaidBefore.obj, source.config, source.flags), chosen, newer)


def _log_place(source: AnswerSource, ends: Path | None, newer: Newer) -> ServedLogs:
    chosen = source.settings()
    first = _read_logs(source, chosen, ends, newer)
    for warning in first.report.warnings:
        source.console.warn(warning)
    ends_known = {} if ends is None else newest_ends(ends)
    again = partial(_read_logs, replace(source, context=cast("typer.Context", SaidBefore())), chosen, ends, newer)
    return ServedLogs(first, chosen.findings, ends_known, newer, again)


class _Mute(Console):
    def warn(self, message: str, **facts: object) -> None:
        """Say nothing."""


class SaidBefore:
    """The context of a further pass over the logs, whose notes and warnings the first one gave."""

    obj = _Mute(quiet=True)

    def find_root(self) -> SaidBefore:
        """Return itself: it has the console."""
        return self


def _read_logs(source: AnswerSource, chosen: Settings, ends: Path | None, newer: Newer) -> LogsRead:
    """Read the log files as they are now, with what the watch has read beyond them."""
    logs = source.logs()
    require_log_of_groups(logs)
    watched = newer.read()
    times: dict[str, GroupTimes] = {}

    def known(stored: Iterable[GroupHistory]) -> Iterator[GroupHistory | None]:
        here = set[str]()
        for history in stored:
            here.add(history.group_id)
            yield history_with_newer(newer, history.group_id, history)
        yield from (newer.history(group_id) for group_id in sorted(watched.keys() - here))

    def noted(stored: Iterable[GroupHistory]) -> Iterator[GroupHistory]:
        for history in known(stored):
            if history is not None:
                times[history.group_id] = GroupTimes.of(history)
                yield history

    report = report_of_logs(source, logs, chosen, ends, None, None, noted)
    answers = source.answers()
    lags = {} if ends is None else lags_by_group(answers.lag(None, all_ends(ends)))
    return LogsRead(report, times, answers, watched, lags)


class ServedWatch:
    """A watch in a thread of its own, whose rows go to the pages that follow, and into what they ask for."""

    def __init__(self, place: str, source: AnswerSource) -> None:
        self.live, self._stop, self._has_begun = Live(), Event(), Event()
        self._watch: Watch | None = None
        self._thread = Thread(target=self._run, args=(place, source.console, source.settings()), daemon=True)
        self._thread.start()

    def newer(self) -> Newer:
        """Return what the watch reads, once it has read what is there."""
        while not self._has_begun.wait(1.0):
            pass
        return NOTHING_NEWER if self._watch is None else self._watch

    def _run(self, place: str, console: Console, chosen: Settings) -> None:
        from jobs.cli.watch import PAUSE_S, Watch, watched_source
        from jobs.cli.watch_lines import lines
        from jobs.watch.followed_groups import FollowedGroups
        from jobs.watch.live_topics import LiveTopics

        is_folder = "://" not in place
        try:
            rows = watched_source(
                None if is_folder else place, [Path(place)] if is_folder else None, chosen.kafka, console.warn
            )
            with closing(rows):
                topics = None if is_folder else LiveTopics()
                groups = FollowedGroups(chosen.audit, chosen.findings, None, console.warn, live_topics=topics)
                following = Watch(rows, groups, None, console)

                def tell(event: Any, *, is_repeated: bool) -> None:
                    for line in lines(event, groups, as_json=True, explained=False, is_repeated=is_repeated):
                        self.live.publish(line)

                following.begin()
                # Before the event: who waits for it takes the watch at once.
                self._watch = following
                self._has_begun.set()
                while not self._stop.is_set():
                    following.tell_round(tell)
                    self._stop.wait(PAUSE_S if is_folder else 0)
        except (CoordinatorAuditError, OSError) as error:
            console.warn(f"the watch ended: {error}")
        finally:
            # Also after an error: the page waits for it before it answers.
            self._has_begun.set()

    def close(self) -> None:
        """End the watch."""
        self._stop.set()
        self._thread.join(timeout=10)
