"""The report: its data from logs and from rows, and the page."""

import base64
import gzip
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import Verdict
from coordinator_core.records import LogPosition
from jobs.formatting import plain
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import MOST_BUCKETS, Opened, ReportHeader, buckets, build
from jobs.report.coverage import absent, coverage
from jobs.report.data import AbsentPartitions, Gap, LogCoverage, Report
from jobs.report.group_page import spells_of_members
from jobs.report.render import duration, to_html, to_json
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.commands import rows_of_command, run_command, text_of_command
from tests.core.audit.findings.test_unassigned import DELETED, HOUR, gathered, running, stopped
from tests.core.audit.histories import all_shown
from tests.core.history.logs import GROUP, GroupLog, alone, current, epoch, gone, member, target, target_epoch
from tests.jobs.logs import batch, write_segment
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples"
PACKED = re.compile(r'<script type="application/gzip" data-groups="([^"]*)">([^<]*)</script>')


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("report") / "deep" / "report.html"
    assert text_of_command("report", "--log", SAMPLES / "logs", "--out", page).strip() == str(page)
    return page


def unpacked(text: str) -> list:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def log() -> GroupLog:
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3))
    log.write(current("m1", 3, 0, 1)).write(current("m2", 3, 2, 3), after_ms=400)
    return log.write(*gone("m2"), epoch(4))


def report_of(*histories: GroupHistory) -> Report:
    source = ReportHeader("c<b>", "1.0", 1_700_000_000_000, (), False, ["odd bytes"])
    return build(histories, load().findings, source, all_shown)


def test_the_order_in_which_groups_are_read_does_not_matter() -> None:
    """Files and tables have the groups in another order; several of these are equally bad."""
    histories = list(group_histories(find_logs([SAMPLES / "share_delivery" / "logs"]), lambda _: None))
    assert report_of(*histories) == report_of(*reversed(histories))


def test_the_sample_is_told_as_the_other_commands_tell_it(written):
    data = json.loads(written.with_suffix(".json").read_text())
    rebalances = rows_of_command("rebalances", "--log", SAMPLES / "logs")
    assert sum(len(group["rebalances"]) for group in data["groups"]) == len(rebalances)
    assert Counter(row["outcome"] for row in rebalances) == {each["name"]: each["count"] for each in data["outcomes"]}
    assert sum(each["count"] for bucket in data["activity"] for each in bucket["outcomes"]) == len(rebalances)
    found = rows_of_command("findings", "--log", SAMPLES / "logs")

    def told(findings: list) -> list:
        return sorted((-row["score"], row["group_id"], row["kind"], row["detail"]) for row in findings)

    assert told(data["findings"]) == told(found)
    assert [row["score"] for row in data["findings"]] == [row["score"] for row in found]
    assert Counter(row["kind"] for row in found) == {each["name"]: each["count"] for each in data["kinds"]}
    assert {each["name"] for each in data["verdicts"]} == {"identical"}
    ends = {(each["topic"], each["partition"]): (each["last_offset"], each["missing"]) for each in data["coverage"]}
    assert ends["__consumer_offsets", 0] == (312, 0)
    assert ends["__consumer_offsets", 3] == (441, 0)


def test_every_rebalance_has_its_story_and_every_sentence_its_evidence(written):
    data = json.loads(written.with_suffix(".json").read_text())
    stories = [rebalance["story"] for group in data["groups"] for rebalance in group["rebalances"]]
    assert all(len(story) > 2 for story in stories)
    assert all(story[0]["evidence"] for story in stories)


def test_the_page_needs_nothing_else_and_holds_the_same_data(written):
    page = written.read_text()
    assert len(page) < 3_000_000
    assert "https://" not in page
    assert set(re.findall(r"http://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe)\b|\bsrc=|@import|url\((?!#)", page)
    fields = unpacked(re.search(r'id="fields">([^<]*)<', page)[1])

    def named(value: object) -> object:
        if isinstance(value, list):
            return [named(each) for each in value]
        if isinstance(value, dict):
            ((kind, row),) = value.items()
            return dict(zip(fields[int(kind)], map(named, row), strict=True))
        return value

    packed = [named(each) for _, text in PACKED.findall(page) for each in unpacked(text)]
    assert packed == json.loads(written.with_suffix(".json").read_text())["groups"]
    ids = [unquote(name) for names, _ in PACKED.findall(page) for name in names.split(" ")]
    assert ids == [each["line"]["group_id"] for each in packed]


def test_every_verdict_is_explained(written):
    page = written.read_text()
    assert all(re.search(rf"<dt><i [^>]*></i>{verdict}</dt><dd>\w", page) for verdict in Verdict)


def test_groups_that_are_left_out_are_counted(monkeypatch):
    monkeypatch.setattr("jobs.report.build.MOST_GROUPS", 2)
    assert "1 more groups are not listed" in to_html(report_of(*(GroupHistory(name, 5) for name in "abc")))
    assert "not listed" not in to_html(report_of(*(GroupHistory(name, 5) for name in "ab")))


def test_names_from_the_log_are_text_never_markup():
    hostile = '</script><img src=x onerror="alert(1)">&'
    page = to_html(report_of(GroupHistory(hostile, 5)))
    assert "<img" not in page
    assert "Cluster c&lt;b&gt;" in page
    assert "#group=%3C%2Fscript%3E" in page
    (name, _), *_ = PACKED.findall(page)
    assert unquote(name) == hostile


def test_a_history_of_nothing_is_a_page_that_says_so():
    report = report_of()
    page = to_html(report)
    assert "No group was seen" in page
    assert "No rebalance was seen" in page
    assert "odd bytes" in page
    assert json.loads(to_json(report)) == plain(report)


def test_groups_that_do_not_run_are_listed_with_the_reason():
    stopped_now = gathered(stopped(), DELETED, HOUR, {})
    report = report_of(stopped_now)
    (group,) = report.groups
    reason = "MISSING_SOURCE_TOPICS: Source topics in are missing."
    assert (group.line.state, group.line.not_running) == ("NOT_READY", reason)
    section = to_html(report).split('id="not-running-title"')[1].split("</section>")[0]
    assert reason in section
    assert "1 with members" in section
    runs = report_of(gathered(running(GroupLog()), DELETED, HOUR, {}))
    assert runs.groups[0].line.not_running is None
    assert "not-running-title" not in to_html(runs)


def test_what_a_member_held_over_time():
    spells = spells_of_members(log().assignments())
    told = [(spell.since.offset, spell.until_ms, spell.units, spell.held.split()[-1]) for spell in spells["m1"]]
    assert [units for _, _, units, _ in told] == [4, 2]
    assert told[0][1] == spells["m1"][1].since.timestamp_ms
    assert told[1][1] is None
    assert told[1][3] == "0-1"
    assert [spell.held.split()[-1] for spell in spells["m2"]] == ["2-3"]


def test_coverage_tells_what_is_missing(tmp_path):
    records = log().records
    kept = [record for record in records if record.at.offset not in (1, 2, 4)]
    write_segment(tmp_path / "__consumer_offsets-7", [batch(record) for record in kept])
    (there,) = coverage(find_logs([tmp_path]))
    assert (there.topic, there.partition, there.first_offset) == ("__consumer_offsets", 7, 0)
    assert (there.records, there.missing, there.gaps) == (len(kept), 3, (Gap(1, 2), Gap(4, 4)))
    assert there.from_start


def test_partitions_of_which_nothing_is_there_are_named(written, tmp_path):
    """The sample has the four partitions that its metadata log tells of; one of them is empty."""
    assert json.loads(written.with_suffix(".json").read_text())["absent"] == []
    shutil.copytree(SAMPLES / "logs", tmp_path / "logs", ignore=shutil.ignore_patterns("__consumer_offsets-2"))
    page = tmp_path / "report.html"
    assert run_command("report", "--log", tmp_path / "logs", "--out", page).exit_code == 0
    data = json.loads(page.with_suffix(".json").read_text())
    assert data["absent"] == [{"topic": "__consumer_offsets", "partitions": [2], "known": 4}]
    assert "1 of 4 partitions of __consumer_offsets were not given" in page.read_text()
    assert "were not given (2)" in page.read_text()


@pytest.mark.parametrize(("counts", "known"), [({}, 4), ({"__consumer_offsets": 6}, 6)], ids=["unknown", "known"])
def test_without_topics_only_partitions_in_between_are_known_to_be_absent(counts, known):
    covered = LogCoverage("__consumer_offsets", 0, 0, 9, -1, -1, 10, 0, 0, (), True)
    (found,) = absent([covered, covered._replace(partition=3)], counts)
    assert found == AbsentPartitions("__consumer_offsets", tuple({*range(known)} - {0, 3}), known)
    assert not list(absent([covered._replace(partition=-1), covered._replace(topic="other")], counts | {"other": 1}))


def test_lag_is_to_the_end_offsets_that_are_given(tmp_path):
    ends = [
        {"topic": "n-1", "partition": 0, "timestamp_ms": 1, "end_offset": 500},
        {"topic": "n-1", "partition": 0, "timestamp_ms": 2, "end_offset": 21},
        {"topic": "n-1", "partition": 1, "timestamp_ms": 2, "end_offset": 3},
    ]
    (tmp_path / "ends.jsonl").write_text("\n".join(map(json.dumps, ends)))
    with_ends = ("--end-offsets", tmp_path / "ends.jsonl", "--out", tmp_path / "r.html")
    assert run_command("report", "--log", SAMPLES / "logs", *with_ends).exit_code == 0
    groups = {each["line"]["group_id"]: each for each in json.loads((tmp_path / "r.json").read_text())["groups"]}
    lags = {(each["topic"], each["partition"]): (each["offset"], each["lag"]) for each in groups["N-cls-7"]["offsets"]}
    assert lags["n-1", 0] == (19, 2)
    assert lags["n-1", 1] == (20, 0), "a commit past an older end is not behind it"
    assert lags["n-1", 2] == (10, None)
    assert run_command("report", "--tables", tmp_path, *with_ends).exit_code == 2


def test_lag_over_time_is_that_of_the_command(tmp_path):
    times = (1_795_257_440_000, 1_795_257_460_000, 1_795_257_500_000)
    ends = [
        {"topic": "n-1", "partition": number, "timestamp_ms": time, "end_offset": 20 + 10 * step + number}
        for step, time in enumerate(times)
        for number in range(3)
    ]
    (tmp_path / "ends.jsonl").write_text("\n".join(map(json.dumps, ends)))
    given = ("--log", SAMPLES / "logs", "--end-offsets", tmp_path / "ends.jsonl")
    assert run_command("report", *given, "--out", tmp_path / "r.html").exit_code == 0
    data = json.loads((tmp_path / "r.json").read_text())
    (group,) = (each for each in data["groups"] if each["line"]["group_id"] == "N-cls-7")
    told = rows_of_command("offsets", "N-cls-7", "--lag-history", *given)
    drawn = {
        (line["topic"], line["partition"], time, lag, status)
        for line in group["lag"]
        for time, lag, status in zip(line["times_ms"], line["lags"], line["status"], strict=True)
    }
    columns = ("topic", "partition", "timestamp_ms", "lag", "status")
    assert drawn == {tuple(point[name] for name in columns) for point in told}
    assert any(lag for _, _, _, lag, _ in drawn)
    (highest,) = (each for each in data["lag"] if each["group_id"] == "N-cls-7")
    assert max(each or 0 for each in highest["highest"]) == max(lag or 0 for _, _, _, lag, _ in drawn)


def test_a_log_without_metadata_says_that_topics_are_unknown(tmp_path):
    batches: dict[int, list] = {}
    for record in log().records:
        batches.setdefault(record.batch, []).append(record)
    write_segment(tmp_path / "__consumer_offsets-0", [batch(*records) for records in batches.values()])
    result = run_command("report", "--log", tmp_path, "--out", tmp_path / "r.html")
    assert result.exit_code == 0
    data = json.loads((tmp_path / "r.json").read_text())
    (group,) = data["groups"]
    assert group["line"]["group_id"] == GROUP
    assert {each["name"] for each in data["verdicts"]} == {"unknown"}
    assert all("missing" in each["judged"] for each in group["rebalances"] if each["verdict"])
    assert "No cluster metadata log was given" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("span_ms", [0, 999, 60_000, 86_400_000, 40 * 365 * 86_400_000])
def test_buckets_are_few_and_lose_nothing(span_ms):
    opened = [Opened(1_700_000_000_000 + span_ms * step // 10, "converged", "unknown", 0) for step in range(11)]
    length, activity = buckets(opened)
    assert sum(part.count for bucket in activity for part in bucket.outcomes) == 11
    assert sum(part.count for bucket in activity for part in bucket.causes) == 11
    assert (activity[-1].since_ms - activity[0].since_ms) // length < MOST_BUCKETS
    assert all(bucket.since_ms % length == 0 for bucket in activity)


def test_durations_for_people():
    assert [duration(each) for each in (0, 999, 1_855, 59_400, 61_000, 12_000_000, 90_061_000)] == [
        "0 ms",
        "999 ms",
        "1.8 s",
        "59 s",
        "1 min 1 s",
        "3 h 20 min",
        "1 d 1 h",
    ]


def test_a_name_that_is_no_page_is_refused(tmp_path):
    result = run_command("report", "--log", SAMPLES / "logs", "--out", tmp_path / "report.pdf")
    assert result.exit_code == 2
    assert ".html" in result.stderr
    assert not list(tmp_path.iterdir())


def test_positions_without_a_time_do_not_bend_the_history():
    line = report_of(GroupHistory("g", LogPosition(0, 1, -1).timestamp_ms)).groups[0].line
    assert (line.group_type, line.first_ms, line.last_ms) == ("OFFSETS", None, None)
