"""A group with as many members as brokers allow, from files and from tables."""

import json
from pathlib import Path

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.simulator.scenario import Scenario
from jobs import nightly_run
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.settings import load
from jobs.simulate.partition import simulate_here
from jobs.sources.files import find_logs
from jobs.sources.snapshot_files import read_topics
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from tests.jobs.null_listener import NullListener
from tests.jobs.queries.same_answers import only_topics_missing

GROUP = {"type": "consumer", "topics": ["t"], "commits": {"every": "1m"}}


def test_a_full_group_is_found_in_files_and_in_tables_alike(tmp_path: Path) -> None:
    groups = {"full": GROUP | {"members": 2}, "not-full": GROUP | {"members": 1}}
    scenario = Scenario.model_validate({"lasts": "5m", "topics": {"t": {"partitions": 2}}, "groups": groups})
    logs, place = tmp_path / "logs", tmp_path / "tables"
    list(simulate_here(scenario, 0, logs, "segments"))
    shown = {"group.consumer.max.size": "2", "group.max.size": "1"}
    row = {"resource_type": "BROKER", "resource": "1", "timestamp_ms": scenario.start_ms + 60_000, "configs": shown}
    (tmp_path / "snapshot.jsonl").write_text(json.dumps(row) + "\n")
    given = {"input.paths": [str(logs), str(tmp_path / "snapshot.jsonl")], "cluster": "c"}
    settings = load(environment={}, flags={**given, "nightly.steps": ["ingest", "decode", "replay", "findings"]})
    outcome = nightly_run.run(Tables(None, str(place)), settings, NullListener())
    assert [step.error for step in outcome.steps if step.error] == []
    listed = read_topics(tmp_path / "snapshot.jsonl")
    files = LogAnswers(find_logs([logs]), only_topics_missing, lambda: settings, listed).findings(None)
    tables = StoredAnswers(FolderReader(str(place)), "c", settings.audit).findings(None)
    assert [row for row in files if row.kind == FindingKind.GROUP_FULL] == [
        row for row in tables if row.kind == FindingKind.GROUP_FULL
    ]
    assert [row.group_id for row in tables if row.kind == FindingKind.GROUP_FULL] == ["full"]
