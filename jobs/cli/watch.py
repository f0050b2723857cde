"""``watch``: rebalances and findings of a running cluster, as they happen."""

from __future__ import annotations

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial, reduce
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coordinator_core.audit.finding_rows import FindingRow, Level
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.tallies import GroupTallies
from coordinator_core.audit.folds.two_logs import combined
from coordinator_core.errors import UsageError
from coordinator_core.groups.certainty import CERTAIN, Certainty, LogGaps
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.log_partition import shown
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords
from coordinator_core.records import Family
from jobs.checks.gates import Gate
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.metrics import NamesOption
from jobs.cli.options import SCHEME, ConfigOption, GroupOption, ProfileOption, TopicsOption, cluster_servers
from jobs.cli.watch_lines import lines
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.metrics.server import served
from jobs.queries.from_logs.given import counted_by, given_logs, given_share_state, given_topics
from jobs.settings import load
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import GROUP_TOPICS
from jobs.sources.log_settings import note_beside
from jobs.watch.events import FindingEvent, WatchEvent
from jobs.watch.followed_group import FollowedGroup
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.growing_logs import GrowingLogs, Source
from jobs.watch.live_topics import LiveTopics
from jobs.watch.state_file import StateFile
from jobs.watch.webhook import Webhook

if TYPE_CHECKING:
    from coordinator_core.cluster.topic_history import TopicHistory
    from jobs.watch.live_broker import Ends, TakenSnapshot


PAUSE_S: Final = 0.2
"""How long a watch of a folder waits before it looks again."""
SAVE_S: Final = 5.0
"""How often the state file is written; what was printed meanwhile is noted in it line by line."""


LATE_MS: Final = 1_000
"""How long after end offsets were read commits that were written before may still come."""


def watch_command(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Argument(metavar="[kafka://HOST:PORT]", help="The cluster, by one or more of its brokers.")
    ] = None,
    log: Annotated[
        list[Path] | None,
        typer.Option("--log", metavar="FOLDER", help="Folder whose segments grow, such as a broker's; repeatable."),
    ] = None,
    group: GroupOption = None,
    show_sentences: Annotated[
        bool, typer.Option("--explain", help="Explain each rebalance in sentences when it ends.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE", help="Go on from this file, and keep in it what the next watch needs."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="Post findings as JSON when they begin, grow much and end: alerts if URL is that of Alertmanager "
            "(/api/v2/alerts), else with a text, as Slack takes it. Alarms and warnings, unless --min-level says else.",
        ),
    ] = None,
    min_level: Annotated[
        Level | None, typer.Option("--min-level", help="Leave out findings of a lower level, in lines and posts.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="[HOST]:PORT",
            help="Serve the metrics of all groups for Prometheus, at /metrics; without HOST on all addresses.",
        ),
    ] = None,
    names: NamesOption = None,
    topics: TopicsOption = None,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Follow the coordinator's log: one line when a rebalance begins, one when it ends, and findings as they begin and
    end.

    It reads what is there first, without a word about it. Of a running cluster it also tells when a group's lag gets
    worse or better. Stop it with Ctrl-C.
    """
    console = Console.of(context)
    chosen = load(config, flags={"audit.profile": profile}, beside=note_beside(log or (), console.note))
    told = topics or (None if chosen.input.topics is None else Path(chosen.input.topics))
    with ExitStack() as stack:
        hook = None
        if webhook is not None:
            hook = stack.enter_context(closing(Webhook(webhook, console.warn, chosen.cluster)))
        source = stack.enter_context(closing(watched_source(url, log, chosen.kafka, console.warn)))
        saved = None if state is None else stack.enter_context(closing(StateFile(state, source.identify())))
        live_topics = LiveTopics() if url is not None and told is None else None
        groups = FollowedGroups(chosen.audit, chosen.findings, _listed(told), console.warn, live_topics=live_topics)
        watch = Watch(source, groups, saved, console)

        def counts(row: FindingRow, least: Level) -> bool:
            gate = Gate(chosen.gates, datetime.now(UTC).date())
            return (group is None or row.group_id == group) and gate.counts(row, least=least)

        def tell(event: WatchEvent, *, is_repeated: bool) -> None:
            if isinstance(event, FindingEvent):
                if hook is not None and counts(event.row, min_level or chosen.gates.min_level):
                    hook.post(event)
                is_shown = counts(event.row, min_level or Level.NOTICE)
            else:
                is_shown = group is None or event.row.group_id == group
            if is_shown:
                for line in lines(event, groups, as_json=as_json, explained=show_sentences, is_repeated=is_repeated):
                    typer.echo(line)

        def go_on() -> Iterator[FindingRow]:
            return (row for row in groups.findings() if counts(row, min_level or chosen.gates.min_level))

        if listen is not None:
            shown = names or [MetricNames.LAG_EXPORTER]
            port = stack.enter_context(served(listen, lambda: watch.facts(chosen.cluster, shown)))
            console.note(f"metrics at port {port}")
        watch.run(tell, PAUSE_S if log else 0, None if hook is None else partial(hook.repeat, go_on))


class Watch:
    """A watch that runs until it is stopped."""

    def __init__(self, source: Source, groups: FollowedGroups, saved: StateFile | None, console: Console) -> None:
        self.groups = groups
        self._source, self._saved, self._console = source, saved, console
        self._is_stopped = False
        self._saved_s = time.monotonic()
        self._end_ms = 0
        self._ends: Ends | None = None
        self._lock = Lock()
        self._has_news = False
        self._is_begun = False

    def run(self, tell: Callable[..., None], pause_s: float, repeat: Callable[[], None] | None = None) -> None:
        """Tell each event until a signal asks to stop; ``repeat`` is called in each round."""
        # Stopped at once, it leaves what it saved last, and notes of each line since.
        with suppress(KeyboardInterrupt), _signals(self._stop):
            self.begin()
            while not self._is_stopped:
                self.tell_round(tell)
                if repeat is not None:
                    repeat()
                if time.monotonic() - self._saved_s > SAVE_S:
                    self.save()
                if not self._is_stopped:
                    time.sleep(pause_s)
            self.save()
        groups = self.groups
        groups.faults.finish()
        read = sum(log.end for log in groups.logs.values())
        self._console.note(f"stopped after {read} offsets of {counted(len(groups), 'group')}")

    def _stop(self) -> None:
        self._is_stopped = True

    def tell_round(self, tell: Callable[..., None]) -> None:
        """Read what is new, and tell each event of it."""
        events = self._round()
        if not self._is_begun:  # topics, too, are known once the first round has read them
            self._is_begun = True
            for reason in missing(self.groups, self._source):
                self._console.warn(reason)
        for event in events:
            self._print(event, tell)

    def begin(self) -> None:
        """Go on from the state file, or read to the end that the logs have now."""
        source, groups, saved = self._source, self.groups, self._saved
        if saved is not None and not saved.is_new:
            source.begin(saved.reached())
            with self._lock:
                saved.load(groups)
                groups.take_snapshot(self._snapshot())
                groups.resume()
        else:
            source.begin({})
            groups.take_snapshot(self._snapshot())
            # Once in any case: a folder is read to its end in one poll, and counts as caught up before it.
            self._feed()
            while not (source.is_caught_up or self._is_stopped):
                self._feed()
            if self._is_stopped:
                return
            with self._lock:
                groups.begin()
            self._has_news = True
            self.save()
        watched = counted(len(groups.logs), "log partition")
        self._console.note(f"watching {counted(len(groups), 'group')} in {watched}")

    def facts(self, cluster: str, names: Sequence[MetricNames]) -> GroupFacts:
        """Return the facts for metrics; another thread may ask."""
        with self._lock:
            return watched_facts(self.groups, cluster, names)

    def read(self) -> Mapping[str, int]:
        """Return how many records were read of each group; another thread may ask."""
        with self._lock:
            counts = Counter[str]()
            for group in self.groups.groups.values():
                counts[group.group_id] += group.fed
            return counts

    def history(self, group_id: str) -> GroupHistory | None:
        """Return the history of a group, as far as it is kept, None if there is none; another thread may ask."""
        with self._lock:
            groups = self.groups
            keys = [key for family in (Family.CONNECT, Family.GROUP) if (key := (family, group_id)) in groups.groups]
            return next(combined([groups.history(key) for key in keys]), None)

    def _snapshot(self) -> TakenSnapshot | None:
        return None if self.groups.live_topics is None else self._source.snapshot()

    def _feed(self) -> None:
        for new in self._source.poll():
            self._has_news = True
            with self._lock:
                self.groups.feed(new)

    def _round(self) -> list[WatchEvent]:
        """Return what happened since the last round."""
        source, groups = self._source, self.groups
        # Taken before the logs are asked: what was written up to then is there once they are read to their ends.
        asked_ms = time.time_ns() // 1_000_000
        self._feed()
        if source.is_caught_up and source.is_settled:
            self._end_ms = asked_ms
        with self._lock:
            look = source.look(groups.lags.partitions)
            if look is not None:
                groups.take_look(look)
                self._ends = look.ends or self._ends
            events = list(groups.events(is_settled=source.is_settled))
            # Commits that were written before the end offsets were read have come by now.
            if self._ends is not None and self._end_ms >= self._ends.time_ms + LATE_MS:
                events += groups.read_ends(self._ends.time_ms, self._ends.offsets, self._end_ms)
                self._ends = None
        return events

    def _print(self, event: WatchEvent, tell: Callable[..., None]) -> None:
        self._has_news = True
        if self._saved is None:
            tell(event, is_repeated=False)
            return
        is_repeated = self._saved.is_doubtful(event)
        # Noted before it is told and after: where a watch was killed in between, the next says that it may repeat it.
        number = self._saved.begin_line(event)
        tell(event, is_repeated=is_repeated)
        self._saved.end_line(number)

    def save(self) -> None:
        """Write what changed to the state file, if there is one. All events were told."""
        if self._saved is not None and self.groups.is_live and self._has_news:
            self._saved.save(self.groups)
        self._has_news, self._saved_s = False, time.monotonic()


def missing(groups: FollowedGroups, source: Source) -> list[str]:
    """Return in words what the followed logs lack for what a watch tells of them, as of log files.

    How far the metadata log reaches is not among it: it is read while it is written.
    """
    topics, places = groups.topics, source.places()
    at_least = shown((place.topic, place.partition) for place in places)
    counts = at_least if source.has_all else _log_counts(groups, at_least)
    of_groups = [log for log in groups.logs.values() if log.place.topic in GROUP_TOPICS]
    gaps = {str(log.place): LogGaps(log.lost[-1][1], log.lost[-1][1]) for log in of_groups if log.lost}
    lost = reduce(LostRecords.joined, (log.lost_records for log in of_groups), NOTHING_LOST)
    share_state, own = given_share_state(places, counts), given_topics(topics)
    for log in groups.logs.values():
        if log.place.family is Family.SHARE:
            share_state.note_lost(log.place.partition, log.lost)
            for span in log.folds.unreadable.groups.values():
                share_state.note_unreadable(log.place.partition, span.first)
    known = Knowledge(given_logs(places, counts), gaps, lost, own, share_state=lambda: share_state)
    return [*known.reasons_with_topics(), *(known.about_share_groups() if _have_share_partitions(groups) else ())]


def _have_share_partitions(groups: FollowedGroups) -> bool:
    """Return whether a share group has initialized share partitions, or the share state log has some."""
    states = (group.folds.audit.group.state for group in groups.groups.values())
    return bool(groups.shares) or any(
        isinstance(state, ShareGroup) and state.state_partitions is not None for state in states
    )


def _log_counts(groups: FollowedGroups, at_least: Mapping[str, int]) -> dict[str, int]:
    """Return how many partitions each log has, as the metadata log says or the groups that were read prove.

    ``at_least``: so many are there.
    """
    placed = defaultdict[str, list[tuple[str, int]]](list)
    for group in groups.groups.values():
        placed[group.place.topic].append((group.group_id, group.place.partition))
    return counted_by(groups.topics, placed, at_least)


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on the first SIGINT or SIGTERM, so that a round ends as a whole; a second one ends the process."""
    before: dict[int, Any] = {}

    def on_signal(number: int, _: object) -> None:
        signal.signal(number, before[number])
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, on_signal)
    try:
        yield
    finally:
        for restored, handler in before.items():
            signal.signal(restored, handler)


def _listed(topics: Path | None) -> TopicHistory | None:
    """Return the topics of snapshots."""
    if topics is None:
        return None
    from jobs.sources.snapshot_files import read_topics

    return read_topics(topics)


def watched_source(url: str | None, log: list[Path] | None, kafka: dict[str, str], warn: Warn) -> Source:
    """Return where the new rows of a cluster, or of folders whose segments grow, come from."""
    if (url is None) == (not log):
        raise UsageError(f"give either {SCHEME}HOST:PORT or --log FOLDER")
    if log:
        return GrowingLogs(log, warn)
    servers = cluster_servers(url or "")
    from jobs.watch.live_broker import LiveBroker

    return LiveBroker(servers, kafka, warn)


IN_PART: Final = Certainty(all_members=False, all_offsets=False, transactions_are_known=False)
"""What is known of a group whose log lacks records: there may have been more of everything."""


def watched_facts(groups: FollowedGroups, cluster: str, names: Sequence[MetricNames]) -> GroupFacts:
    """Return the facts about all groups as of the last record that was read."""
    followed = sorted(groups.groups.values(), key=lambda group: group.group_id)
    of_groups = [log for place, log in groups.logs.items() if place.family in (Family.GROUP, Family.CONNECT)]
    tallies: dict[str, GroupTallies] = {}
    for tracked in followed:
        counted = tracked.tallies.with_rows(tracked.folds.audit.open_rows())
        # A group that moved between two logs is followed in both, and is one group in the metrics.
        known = tallies.get(tracked.group_id)
        tallies[tracked.group_id] = counted if known is None else known.joined(counted)
    return GroupFacts(
        cluster,
        names,
        list(_groups(groups, followed)),
        groups.lags.ends,
        tallies,
        list(groups.findings()),
        lag=[point for points in groups.lags.points.values() for point in points],
        is_whole=all(log.is_whole for log in groups.logs.values()),
        moment_ms=max((group.last_ms for group in of_groups if group.last_ms >= 0), default=None),
    )


def _groups(groups: FollowedGroups, followed: Sequence[FollowedGroup]) -> Iterator[GroupThen]:
    for tracked in followed:
        committed = {
            TopicPartition(row.topic, row.partition): Commit(row.offset, None, "", -1, None, None, row.last)
            for row in tracked.folds.commits.partitions()
            if row.offset is not None
        }
        group = tracked.folds.audit.group
        if group.state is None and group.from_start and committed:
            group = replace(group, state=ClassicGroup())  # offsets alone make a classic group
        then = GroupThen(group, GroupOffsets(committed), CERTAIN if groups.logs[tracked.place].is_whole else IN_PART)
        if then.is_possible:
            yield then
