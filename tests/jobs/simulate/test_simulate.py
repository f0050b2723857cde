"""``simulate``: the same bytes for a seed, in every shape; one clear line for a scenario that cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.simulate.partition import new_folder, write_metadata
from jobs.simulate.scenario_file import load_scenario
from jobs.simulate.spark import run as simulate
from jobs.simulate.spark import task_of
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.commands import run_command

SCENARIO = """
lasts: 5m
cluster: {partitions: 2, racks: [a, b]}
topics:
  orders: {partitions: 4, grows: {2m: 6}}
groups:
  new-{n}: {type: consumer, count: 3, topics: [orders], members: 2, events: [{at: 1m, join: 1}, {at: 3m, crash: 1}]}
  sinks: {type: connect-kip-848, connectors: {jdbc: 2, s3: 1}, members: 2, events: [{at: 2m, join: 1}]}
  old-{n}: {type: classic, count: 3, topics: [orders], members: 2, assignor: sticky, events: [{at: 1m, deploy: {}}]}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    file = tmp_path_factory.mktemp("scenario") / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def run(*arguments):
    return run_command("simulate", *arguments)


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_seed_gives_the_same_bytes_in_every_process(scenario, tmp_path):
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "jobs", "simulate", scenario, "--seed", "5", "--out", tmp_path / hash_seed]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        subprocess.run(list(map(str, command)), check=True, env=environment, capture_output=True)
    assert run(scenario, "--seed", 6, "--out", tmp_path / "other").exit_code == 0
    first, second, other = (files(tmp_path / name) for name in ("1", "2", "other"))
    assert first == second
    assert first.keys() == other.keys()
    assert "__cluster_metadata-0/00000000000000000000.log" in first
    log = "__consumer_offsets-1/00000000000000000000.log"
    assert first[log] != other[log]


def test_without_spark_one_process_simulates(scenario, tmp_path):
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from jobs.cli.app import main; sys.argv = ['coordinator-audit', 'simulate', *sys.argv[1:]]; main()\n"
    )
    command = [sys.executable, "-c", script, str(scenario), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "__consumer_offsets-1").is_dir()


def test_both_shapes_hold_the_same_records(scenario, tmp_path):
    assert run(scenario, "--out", tmp_path / "segments").exit_code == 0
    assert run(scenario, "--out", tmp_path / "rows", "--shape", "kafka-parquet").exit_code == 0
    rows = pq.read_table(tmp_path / "rows" / "records").to_pylist()
    found = [(row["topic"], row["partition"], row["offset"], row["key"] or b"", row["value"]) for row in rows]
    expected = []
    for log in find_logs([tmp_path / "segments"]):
        for row in LogReader([log], pytest.fail).rows():
            expected.append((log.topic, log.partition, row.offset, row.key, row.value))
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert (tmp_path / "rows" / "truth" / "consumer_offsets-00000.jsonl").read_bytes() == (
        tmp_path / "segments" / "truth" / "consumer_offsets-00000.jsonl"
    ).read_bytes()


def test_tasks_write_what_one_process_writes(scenario, tmp_path):
    assert run(scenario, "--out", tmp_path / "here").exit_code == 0
    out, model = tmp_path / "tasks", load_scenario(scenario)
    new_folder(out)
    metadata = write_metadata(model, 1, out, "segments")
    task = task_of(model.model_dump_json(), 1, str(out), "segments")
    for _ in range(2):  # a task that is tried again does no harm
        batches = [pa.RecordBatch.from_pydict({"id": [number]}) for number in (1, 2, 0, 3)]
        rows = [row for batch in task(batches) for row in batch.to_pylist()]
    assert files(out) == files(tmp_path / "here")
    assert [(row["topic"], row["partition"]) for row in rows] == [
        ("__consumer_offsets", 1),
        ("__worker_offsets", 0),
        ("__consumer_offsets", 0),
        ("__worker_offsets", 1),
    ]
    assert metadata.records > 0


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shape", ["segments", "kafka-parquet"])
def test_spark_writes_what_one_process_writes(scenario, tmp_path, spark, shape):
    assert run(scenario, "--out", tmp_path / "here", "--shape", shape).exit_code == 0
    written = simulate(spark, load_scenario(scenario), 1, tmp_path / "spark", shape)
    assert files(tmp_path / "spark") == files(tmp_path / "here")
    assert sum(each.records for each in written) == sum(
        json.loads(line)["records"] for line in run(scenario, "--out", tmp_path / "again", "--json").stdout.splitlines()
    )


def test_what_was_written_is_counted(scenario, tmp_path):
    result = run(scenario, "--out", tmp_path / "out", "--json")
    counts = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["topic"], each["partition"]) for each in counts] == [
        ("__cluster_metadata", 0),
        ("__consumer_offsets", 0),
        ("__consumer_offsets", 1),
        ("__worker_offsets", 0),
        ("__worker_offsets", 1),
    ]
    written = {(each["topic"], each["partition"]): each["records"] for each in counts}
    assert written == {
        (log.topic, log.partition): sum(1 for _ in LogReader([log], pytest.fail).rows())
        for log in find_logs([tmp_path / "out"])
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("type: consumer", "typ: consumer"), "unknown key groups.new-{n}.typ; did you mean type?"),
        (("lasts: 5m", "lasts: 5"), None),
        (("lasts: 5m", "lasts: five minutes"), "lasts: a duration is a number with a unit: 250ms, 30s, 5m, 2h, 1d"),
        (("members: 2", "members: -2"), "groups.new-{n}.members: Input should be greater than or equal to 0"),
        (("grows: {2m: 6}", "grows: {2m: 3}"), "topic orders: its partition counts [4, 3] do not increase"),
        (("topics: [orders]", "topics: [order]"), "group new-{n}: no topic is named order"),
        (("join: 1", "joyn: 1"), "did you mean join?"),
        (("{at: 1m, join: 1}", "{at: 1m}"), "an event needs exactly one action"),
        (("assignor: sticky", "assignor: stick"), "no assignor 'stick' for classic groups"),
        (
            ("partitions: 2,", "partitions: 2, outages: [{at: 1m, broker: 3}],"),
            "no broker has the number 3; the last one is 2",
        ),
        (
            ("partitions: 2,", "partitions: 2, outages: [{at: 1m, broker: 0}, {at: 2m, broker: 1}],"),
            "one outage has to be over before the next one begins",
        ),
        (("partitions: 2,", "partitions: 2, config: {group.consumer.max.sise: 1},"), "group.consumer.max.sise"),
        (
            ("type: connect-kip-848", "type: connect-kip-848, versions: [2, 1]"),
            "versions are written as [lowest, highest]",
        ),
        (("type: connect-kip-848", "type: connect-kip-848, topics: [orders]"), "have connectors, no topics"),
        (("type: connect-kip-848", "type: connect-kip-848, session_timeout: 9s"), "not the scenario"),
        (("{at: 2m, join: 1}", "{at: 2m, migrate: classic}"), "connect-kip-848 groups cannot migrate to classic"),
        (
            ("{at: 2m, join: 1}", "{at: 2m, migrate: connect}, {at: 3m, delete: true}"),
            "a group of workers that migrates cannot be deleted",
        ),
        (("{at: 1m, deploy: {}}", "{at: 1m, deploy: {versions: [0, 1]}}"), "members of classic groups have none"),
        (("count: 3", "count: 1"), "{n} in the name needs a count above 1"),
        (
            (
                "groups:\n",
                "groups:\n  a{n}: {type: classic, count: 11, topics: [orders]}\n"
                "  a1{n}: {type: classic, count: 2, topics: [orders]}\n",
            ),
            "group a1{n}: a{n} also stands for a10",
        ),
        (
            ("topics:\n", "topics:\n  a{n}: {partitions: 1, count: 2}\n  a1: {partitions: 1}\n"),
            "topic a1: a{n} also stands for a1",
        ),
    ],
)
def test_a_scenario_that_cannot_be_is_refused_in_one_line(change, said, tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO.replace(*change))
    result = run(file, "--out", tmp_path / "out")
    if said is None:
        assert result.exit_code == 0, "a plain number is milliseconds"
        return
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {file}: ")
    assert said in line
    assert not (tmp_path / "out").exists()


def test_a_partition_without_a_record_has_an_empty_segment(tmp_path):
    """As a broker leaves it: without one, answers would say that the partition was not given."""
    file = tmp_path / "scenario.yaml"
    file.write_text("""
lasts: 1m
cluster: {brokers: 1, partitions: 4}
topics: {orders: {partitions: 2}}
groups: {shop: {type: consumer, topics: [orders], members: 1}}
""")
    assert run(file, "--out", tmp_path / "out").exit_code == 0
    result = run_command("groups", "--log", tmp_path / "out", "--json")
    assert [json.loads(line)["group"] for line in result.stdout.splitlines()] == ["shop"]
    assert result.stderr == ""


def test_a_folder_that_holds_something_is_left_alone(scenario, tmp_path):
    (tmp_path / "note").write_text("mine")
    result = run(scenario, "--out", tmp_path)
    assert result.exit_code == 1
    assert "not empty" in result.stderr
    assert files(tmp_path) == {"note": b"mine"}
