"""The dump command: what it reads, what it says about damage, its exit codes."""

import json
import subprocess
import sys
import tarfile

import pytest

from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from tests.commands import run_command
from tests.core.wire.segments import message
from tests.core.wire.test_json_lines import commit

SEGMENT = "00000000000000000000.log"


def batch(first, count=3):
    return encode_batch([commit(offset) for offset in range(first, first + count)])


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "__consumer_offsets-3"
    found.mkdir()
    (found / SEGMENT).write_bytes(batch(0) + batch(3))
    return found


def dump(*arguments):
    return run_command("dump", *arguments)


def offsets(result):
    return [json.loads(text)["offset"] for text in result.stdout.splitlines()]


@pytest.mark.parametrize("options", [(), ("--jsonl",), ("--format", "jsonl"), ("--quiet",)])
def test_json_lines_are_the_default(folder, options):
    result = dump(folder, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert offsets(result) == list(range(6))
    assert {json.loads(text)["partition"] for text in result.stdout.splitlines()} == {3}


def test_directory_file_and_archive_print_the_same(folder, tmp_path):
    archive = tmp_path / "logs.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    assert dump(folder).stdout == dump(folder / SEGMENT).stdout == dump(archive).stdout != ""


def test_of_several_copies_each_record_is_printed_once_with_its_folder(tmp_path):
    """The second copy goes on, and has another record at offset 2: nothing of it is lost."""
    other = encode_batch([commit(0), commit(1), NewRecord(2, 1, b"\x00\x01", None)])
    for name, content in (("b1", batch(0)), ("b2", other + batch(3))):
        copy = tmp_path / name / "__consumer_offsets-3"
        copy.mkdir(parents=True)
        (copy / SEGMENT).write_bytes(content)
    once = dump(tmp_path)
    assert offsets(once) == [0, 1, 2, 2, 3, 4, 5]
    folders = [json.loads(text)["folder"] for text in once.stdout.splitlines()]
    assert folders == [str(tmp_path / name / "__consumer_offsets-3") for name in ["b1"] * 3 + ["b2"] * 4]
    kafka = ("--format", "kafka", "--formatter", "offsets")
    printed = [len(dump(tmp_path, *kafka, *more).stdout.splitlines()) for more in ((), ("--doubles",))]
    assert printed[0] + 2 == printed[1], "the records 0 and 1 are in both copies"
    with_batches = [dump(tmp_path, "--format", "kafka", *more).stdout for more in ((), ("--doubles",))]
    assert [text.count("| offset: ") for text in with_batches] == [7, 9]
    assert with_batches[0].count("Dumping") == 2
    assert sorted(offsets(dump(tmp_path, "--doubles"))) == sorted([*range(3), *range(6)])
    assert "folder" not in json.loads(dump(tmp_path / "b1").stdout.splitlines()[0])


def test_of_several_topics_the_main_one_is_printed_unless_told(folder, tmp_path):
    other = tmp_path / "__cluster_metadata-0"
    other.mkdir()
    (other / SEGMENT).write_bytes(encode_batch([NewRecord(0, 1, None, b"\x01\x17\x00\x00\x00")]))
    result = dump(tmp_path)
    assert offsets(result) == list(range(6))
    assert "__cluster_metadata (choose with --topic)" in result.stderr
    assert dump(tmp_path, "--quiet").stderr == ""
    assert json.loads(dump(tmp_path, "--topic", "__cluster_metadata").stdout)["typeName"] == "BEGIN_TRANSACTION_RECORD"


def test_a_damaged_batch_is_left_out_and_said(folder):
    data = bytearray(batch(0) + batch(3) + batch(6))
    data[len(batch(0)) + 70] ^= 1
    (folder / SEGMENT).write_bytes(data)
    result = dump(folder)
    assert result.exit_code == 1
    assert offsets(result) == [0, 1, 2, 6, 7, 8]
    assert result.stderr.startswith(f"warning: {folder / SEGMENT} at byte {len(batch(0))}: the CRC is not that")
    told = json.loads(dump(folder, "--json").stderr)
    assert (told["file"], told["position"]) == (str(folder / SEGMENT), len(batch(0)))


def test_a_truncated_tail_is_said_and_no_failure(folder):
    (folder / SEGMENT).write_bytes((batch(0) + batch(3))[:-5])
    result = dump(folder)
    assert result.exit_code == 0
    assert offsets(result) == [0, 1, 2]
    assert "the file ends within a batch" in result.stderr


def test_records_that_do_not_decode_are_printed_and_said(folder):
    (folder / SEGMENT).write_bytes(encode_batch([NewRecord(0, 1, b"\xff\xff", b""), commit(1)]))
    result = dump(folder)
    assert result.exit_code == 0
    assert offsets(result) == [0, 1]
    assert "the first at offset 0" in result.stderr
    console = dump(folder, "--format", "kafka", "--formatter", "offsets")
    assert len(console.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "the file is empty"),
        (b"Some text that is no log at all.", "text that is not output of Kafka's tools: give segments"),
    ],
)
def test_a_file_that_is_no_log_is_one_clear_line(tmp_path, content, cause):
    path = tmp_path / "some.log"
    path.write_bytes(content)
    result = dump(path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {path}")
    assert cause in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_directory_without_logs_and_a_path_that_is_not_there(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        result = dump(path)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {path}: ")


@pytest.mark.parametrize(
    "arguments", [(), ("x", "--format", "xml"), ("x", "--jsonl", "--format", "kafka"), ("x", "--nope")]
)
def test_wrong_usage_is_exit_code_2(arguments):
    assert dump(*arguments).exit_code == 2


def test_an_empty_segment_in_a_directory_is_fine(folder):
    (folder / "00000000000000000006.log").write_bytes(b"")
    result = dump(folder)
    assert result.exit_code == 0
    assert offsets(result) == list(range(6))


def test_kafka_dump_log_and_console_formatter(folder):
    lines = dump(folder, "--format", "kafka").stdout.splitlines()
    assert lines[:2] == [f"Dumping {folder / SEGMENT}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 2 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1")
    assert lines[3].startswith("| offset: 0 CreateTime: 5 keySize: 12 valueSize: 43 sequence: -1 headerKeys: [] key: {")
    assert len(lines) == 2 + 2 + 6
    (first, *_) = dump(folder, "--format", "kafka", "--formatter", "offsets").stdout.splitlines()
    assert json.loads(first)["key"] == {"type": 1, "data": {"group": "g", "topic": "t", "partition": 0}}
    assert dump(folder, "--format", "kafka", "--formatter", "groupmetadata").stdout == ""
    wrong = dump(folder, "--format", "kafka", "--formatter", "sharestate")
    assert wrong.exit_code == 1
    assert "sharestate" in wrong.stderr


def test_kafka_dump_log_of_odd_batches(folder):
    damaged = bytearray(batch(9))
    damaged[-1] ^= 1
    blob = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff\x00\x00\x00\x00"
    data = (
        message(4, b"\x00\x01", None, magic=1, timestamp=7)
        + bytes(damaged)
        + encode_batch([commit(12)], leader_epoch=2)
    )
    (folder / SEGMENT).write_bytes(data + blob)
    result = dump(folder, "--format", "kafka")
    assert "offset: 4 position: 0 CreateTime: 7 size: 36 magic: 1 compresscodec: none" in result.stdout
    assert "isvalid: false" in result.stdout
    assert "key: Error at offset 4, skipping." in result.stdout
    assert "Non-consecutive offsets in" in result.stderr
    assert "  4 is followed by 12" in result.stderr


def test_dump_needs_no_spark_and_leaves_pandas_out(folder):
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from jobs.cli.app import main; sys.argv = ['coordinator-audit', 'dump', sys.argv[1]]\n"
        "try: main()\n"
        "finally: assert not {'pandas', 'rich'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, check=True, timeout=60)
    assert len(done.stdout.splitlines()) == 6


def test_a_reader_that_goes_away_is_no_traceback(folder):
    (folder / SEGMENT).write_bytes(b"".join(batch(at * 3) for at in range(3000)))
    command = [sys.executable, "-c", "from jobs.cli.app import main; main()", "dump", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.readline()
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    running.wait(timeout=60)


def test_the_text_of_kafka_dump_log_prints_what_the_segment_does(folder, tmp_path):
    (tmp_path / "dump.txt").write_text(dump(folder, "--format", "kafka").stdout)
    of_text, of_segment = (
        [json.loads(line) for line in dump(place).stdout.splitlines()] for place in (tmp_path / "dump.txt", folder)
    )
    assert of_text == of_segment != []
    refused = dump(tmp_path / "dump.txt", "--format", "kafka")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "this needs the segment itself" in refused.stderr
