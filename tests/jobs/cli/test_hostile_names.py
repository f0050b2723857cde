"""Names from a log that would act on what shows them: terminals, HTML, JSON and Prometheus labels."""

import io
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_core.records import RecordType
from jobs.cli.console import Console
from jobs.cli.dump import VisibleText
from jobs.formatting import json_text, visible
from tests.commands import rows_of_command, run_command, text_of_command
from tests.core.builders import GroupLog, classic_member
from tests.jobs.logs import batch, write_segment

HOSTILE = {
    "escape sequence": "\x1b[2J\x1b[31mred",
    "C1 control": "\x9b31mred\x85next",
    "new line": "two\nlines\rover\ttab",
    "null": "nu\x00ll",
    "bidirectional": "abc\u202etxt.exe\u2066x\u2069\u200f",
    "invisible": "zero\u200bwidth\ufeff\u2028line",
    "tag characters": "x\U000e0041\U000e007f",
    "markup": "<script>alert(1)</script><b>&amp;",
    "quotes": "a'b\"c`d' OR '1'='1'; --",
    "path": "../../etc/passwd\\..\\x",
    "template": "{{ 7 * 7 }} ${HOME} %s {0}",
    "console markup": "[red]x[/red] :smile: [link=http://e.vil]y[/link]",
    "option": "--help",
    "label": 'x",evil="1\\',
}
ACTING = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))
"""Categories of characters that a terminal acts on, or that change how the others are shown."""

COMMANDS = (["groups"], ["describe", "--all"], ["audit"], ["findings"], ["rebalances"])


def acting(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ACTING and char != "\n"}


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE.keys())
def name(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture
def logs(name: str, tmp_path: Path) -> Path:
    """A group, members, clients, hosts, topics, an assignor, metadata of commits: all of this name; and a record that
    cannot be decoded."""
    log, classic = GroupLog(name), GroupLog(f"{name}2")
    classic.offset = 20
    records = [
        log.member(name, clientId=name, clientHost=name, instanceId=name, rackId=name, serverAssignor=name)._replace(
            value_version=0
        ),
        log.epoch(1),
        log.target(name, {"AAAAAAAAAAAAAAAAAAAAAQ": [0]}),
        log.target_epoch(1),
        log.current(name, 1, {"AAAAAAAAAAAAAAAAAAAAAQ": [0]}),
        log.commit(name, 0, 5, metadata=name),
    ]
    generation = classic.classic(1, [classic_member(name, clientId=name, clientHost=name)], name, protocolType=name)
    broken = log.tombstone(RecordType.CONSUMER_GROUP_MEMBER_METADATA, memberId=name)
    folder = tmp_path / "logs" / "__consumer_offsets-0"
    write_segment(folder, [batch(*records), batch(broken), batch(generation)])
    return tmp_path / "logs"


def test_terminals_show_names_escaped(name: str, logs: Path) -> None:
    seen = ""
    for command in (*COMMANDS, ["history", "--", name], ["offsets", "--", name], ["owners", "--", name]):
        for json_flag in ([], ["--json"]):
            result = run_command(command[0], "--log", logs, *json_flag, *command[1:])
            assert result.exit_code in (0, 1), result.output
            assert result.exception is None or isinstance(result.exception, SystemExit)
            between_columns = set() if json_flag else {"\t"}
            assert not acting(result.stdout) - between_columns, command
            assert not acting(result.stderr), command
            assert {line.count("\t") for line in result.stdout.splitlines()} <= {0, *range(2, 20)}, "no name has one"
            seen += "" if json_flag else result.stdout
    assert visible(name)[:6] in seen


def test_json_has_the_name_itself(name: str, logs: Path) -> None:
    lines = rows_of_command("groups", "--log", logs)
    assert {line["group"] for line in lines} == {name, f"{name}2"}
    assert not acting(json_text(name))
    assert json.loads(json_text({name: name})) == {name: name}


def test_metrics_have_the_name_as_a_label(name: str, logs: Path) -> None:
    labels = [
        each.labels
        for family in text_string_to_metric_families(text_of_command("metrics", "--log", logs))
        for each in family.samples
    ]
    assert {each["group"] for each in labels if "group" in each} == {name, f"{name}2"}
    assert not any("evil" in each for each in labels)


def test_the_page_has_the_name_as_text(name: str, logs: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run_command("report", "--log", logs, "--out", page).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "<b>&amp;" not in html
    assert {each.name for each in tmp_path.iterdir()} == {"logs", "report.html", "report.json"}
    assert list(names_in(json.loads((tmp_path / "report.json").read_text(encoding="utf-8")), name))


def names_in(value: object, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from names_in(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each, name)
    elif value == name:
        yield name


def test_messages_are_escaped(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Console().warn(f"group {name!s} is odd")
    assert not acting(capsys.readouterr().err)


def test_a_dump_on_a_terminal_is_escaped(name: str) -> None:
    terminal = io.BytesIO()
    VisibleText(terminal).write(f"{name}\nnext\n".encode() + b"\xff\n")
    assert not acting(terminal.getvalue().decode())
    assert terminal.getvalue().endswith(b"next\n\\xff\n")
