"""``watch``: rebalances and findings of a running cluster, as they happen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated, Final, Protocol

import typer

from coordinator_core.audit.explain import explain
from coordinator_core.audit.folds.group_history import counted
from coordinator_core.errors import InputError, UsageError
from coordinator_core.records import LogPosition
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import SCHEME, ConfigOption, GroupOption, ProfileOption, TopicsOption, cluster_servers
from jobs.cli.output import cell, print_json, utc
from jobs.cli.rebalance_text import causes_text, effects, epochs
from jobs.formatting import plain
from jobs.settings import load
from jobs.sources.bounded_warnings import Warn
from jobs.watch import progress_file
from jobs.watch.followed_groups import FindingArose, FollowedGroups, RebalanceBegan, RebalanceEnded, WatchEvent
from jobs.watch.new_rows import NewRows
from jobs.watch.webhook import Webhook

PAUSE_S: Final = 0.2
"""How long a watch of a folder waits before it looks again."""


class Source(Protocol):
    """Where new rows come from."""

    @property
    def is_caught_up(self) -> bool:
        """Whether what was there at the beginning has been read."""

    def poll(self) -> Iterator[NewRows]:
        """Yield what is new."""

    def close(self) -> None:
        """Let go of it."""


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
        typer.Option("--state", metavar="FILE", help="Remember what was told: the next watch goes on from there."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="Post each new finding as JSON: alerts if URL is that of Alertmanager (/api/v2/alerts), else with a "
            "text, as Slack takes it.",
        ),
    ] = None,
    topics: TopicsOption = None,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Follow the coordinator's log: one line when a rebalance begins, one when it ends, and each new finding.

    It reads what is there first, without a word about it. Stop it with Ctrl-C.
    """
    console = Console.of(context)
    chosen = load(config, flags={"audit.profile": profile})
    listed = None
    if topics is not None:
        from jobs.sources.snapshot_files import read_topics

        listed = read_topics(topics)
    told = None if state is None else progress_file.read(state)
    groups = FollowedGroups(chosen.audit, chosen.findings, listed, console.warn)
    if told is not None:
        groups.told_before, groups.is_live = told, True
    with ExitStack() as stack:
        hook = None if webhook is None else stack.enter_context(closing(Webhook(webhook, console.warn)))
        source = stack.enter_context(closing(_source(url, log, chosen.kafka, console.warn)))
        try:
            _read_what_is_there(source, groups, console)
            told = groups.told()
            while True:
                seen = False
                for event in _events(source, groups):
                    seen = True
                    if group is None or event.row.group_id == group:
                        _print(event, as_json=as_json, show_sentences=show_sentences)
                        if hook is not None and isinstance(event, FindingArose):
                            hook.post(event.row)
                told = groups.told()
                if seen and state is not None:
                    progress_file.write(state, told)
                time.sleep(PAUSE_S if log else 0)
        except KeyboardInterrupt:
            # Of a round that is cut short, rows were read whose events were not printed: they come again.
            if state is not None and told is not None:
                progress_file.write(state, told)
            console.note(f"stopped after {sum(groups.ends.values())} offsets of {counted(len(groups), 'group')}")


def _source(url: str | None, log: list[Path] | None, kafka: dict[str, str], warn: Warn) -> Source:
    if (url is None) == (not log):
        raise UsageError(f"give either {SCHEME}HOST:PORT or --log FOLDER")
    if log:
        from jobs.watch.growing_logs import GrowingLogs

        return GrowingLogs(log, warn)
    servers = cluster_servers(url or "")
    from jobs.watch.live_broker import LiveBroker

    return LiveBroker(servers, kafka, warn)


def _read_what_is_there(source: Source, groups: FollowedGroups, console: Console) -> None:
    """Read to the end that the logs have now. Only what a former watch did not tell is printed."""
    if groups.is_live:
        return
    while True:
        for new in source.poll():
            groups.feed(new)
        if source.is_caught_up:
            break
    for _ in groups.events():
        raise InputError("a watch that is not live tells nothing")
    groups.told_before, groups.is_live = dict(groups.ends), True
    console.note(f"watching {counted(len(groups), 'group')} in {counted(len(groups.ends), 'log partition')}")


def _events(source: Source, groups: FollowedGroups) -> Iterator[WatchEvent]:
    for new in source.poll():
        groups.feed(new)
    yield from groups.events()


def _print(event: WatchEvent, *, as_json: bool, show_sentences: bool) -> None:
    """Print one line for an event; with ``show_sentences`` also what ``explain`` says of a rebalance that ended."""
    if as_json:
        print_json(_as_json(event))
        return
    typer.echo(" ".join(cell(part) for part in _words(event)))
    if show_sentences and isinstance(event, RebalanceEnded):
        for sentence in explain(event.history, event.row):
            typer.echo(f"    {cell(sentence.text)}")


def _as_json(event: WatchEvent) -> dict[str, object]:
    if isinstance(event, RebalanceBegan):
        return {"event": "rebalance_began", **plain(event.row)}
    if isinstance(event, RebalanceEnded):
        verdict = None if event.verdict is None else event.verdict.verdict
        return {"event": "rebalance_ended", **plain(event.row), "verdict": verdict}
    return {"event": "finding", **plain(event.row)}


def _words(event: WatchEvent) -> Iterator[str]:
    """Yield the parts of an event's line: when, which group, what, and the record that proves it."""
    at, what = _what(event)
    yield "-" if at is None else str(utc(at.timestamp_ms))
    yield event.row.group_id or "the cluster"
    yield what
    if at is not None:
        yield f"[{at.partition}:{at.offset}]"


def _what(event: WatchEvent) -> tuple[LogPosition | None, str]:
    if isinstance(event, RebalanceBegan):
        return event.row.at, f"rebalance {epochs(event.row)} began: {causes_text(event.row) or 'unknown'}"
    if isinstance(event, RebalanceEnded):
        verdict = "not judged" if event.verdict is None else event.verdict.verdict
        did = effects(event.row) or "no effect"
        what = f"rebalance {epochs(event.row)} {event.row.outcome}: {did}; target {verdict}"
        return event.row.finished or event.row.at, what
    about = f" {event.row.subject}" if event.row.subject else ""
    newest = max(event.row.evidence, default=None, key=lambda each: each.offset)
    return newest, f"finding {event.row.kind}{about}: {event.row.detail}"
