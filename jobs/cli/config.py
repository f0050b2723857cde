"""``config``: the effective settings, and the source of each value; of a cluster the levels of its features, too."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs import settings
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.options import ClusterOption, ConfigOption, LogsOption, StoreOption
from jobs.cli.output import print_json
from jobs.secret_values import shown, shown_name
from jobs.sources.log_settings import note_beside

if TYPE_CHECKING:
    from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd


def config_command(
    context: typer.Context,
    config: ConfigOption = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a value as a flag does; repeatable.")
    ] = None,
    log: LogsOption = None,
    tables: StoreOption = None,
    cluster: ClusterOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the effective settings and where each value comes from: default, file, environment or flag.

    Settings for Spark and for Kafka's client are shown as *** unless they are known to be harmless. With --log or
    --tables the levels of features that the cluster works with at the end of the metadata log are shown, too.
    """
    if log and tables is not None:
        raise typer.BadParameter("give either --log PATH or --tables PLACE")
    console = Console.of(context)
    beside = note_beside(log or (), console.note)
    flags = settings.assignments(assignments or [])
    effective = settings.explain(settings.layers(config, os.environ, flags, beside))
    lines = [(shown_name(name), shown(name, known), origin) for name, known, origin in effective]
    if log or tables is not None:
        lines += _features(console, log or [], {"tables": tables, "cluster": cluster}, config)
    for label, value, origin in lines:
        if console.json:
            print_json({"setting": label, "value": value, "from": origin})
        else:
            print(f"{label}: {dumps(value, ensure_ascii=False)}  # {origin}")


def _features(
    console: Console, log: Sequence[Path], flags: Mapping[str, str | None], config: Path | None
) -> list[tuple[str, int, str]]:
    """Return the levels of features, each with the record that says so."""
    features = _at_end(console, log, flags, config).features
    if not features:
        console.warn("the levels of features are not known: the metadata log (__cluster_metadata) has them")
    return [
        (
            f"feature {name}",
            known.level,
            f"{'' if known.is_set else 'never set; brokers support it since '}"
            f"__cluster_metadata {known.at.partition}:{known.at.offset}",
        )
        for name, known in features.items()
    ]


def _at_end(console: Console, log: Sequence[Path], flags: Mapping[str, str | None], config: Path | None) -> TopicsAtEnd:
    if not log:
        from jobs.cli.stored_source import open_stored
        from jobs.relations.logs import topics_at_end

        reader, chosen = open_stored(console, config, dict(flags))
        return topics_at_end(reader, chosen.cluster)
    from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
    from jobs.sources.copies import without_tails
    from jobs.sources.files import METADATA_TOPIC, find_logs
    from jobs.sources.log_reader import by_partition
    from jobs.sources.topics import known_topics

    logs = without_tails(find_logs(log, topics={METADATA_TOPIC}, snapshots=True, warn=console.warn))
    return TopicsAtEnd.of(known_topics(by_partition(logs), None, console.warn))
