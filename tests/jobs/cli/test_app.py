"""The command table: help without imports, errors as one line, exit codes."""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import get_args

import pytest
import typer
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

from coordinator_core.errors import LogFormatError, UsageError
from jobs.cli import app as application
from jobs.cli.app import COMMANDS, LAB, Entry
from jobs.cli.console import Console, JsonOption, LogFormat, QuietOption
from jobs.installation import software_version
from jobs.tables.spark_errors import one_line
from tests.commands import run_command, text_of_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.shared_data import ROOT


def broken(context: typer.Context, path: str, quiet: QuietOption = False, json: JsonOption = False) -> None:
    raise LogFormatError("no log\nat all", file=path, position=7)


def failing_in_spark() -> None:
    raise AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] no such table\n\nJVM stacktrace:\nat a page of it")


def unwritable(path: str) -> None:
    Path(path).write_text("")


def without_extra() -> None:
    import great_expectations_of_nobody  # noqa: F401


@pytest.fixture(autouse=True)
def commands(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("jobs.cli.sample")
    monkeypatch.setitem(sys.modules, "jobs.cli.sample", module)
    for function in (broken, failing_in_spark, unwritable, without_extra):
        name = function.__name__
        setattr(module, f"{name}_command", function)
        monkeypatch.setitem(application.COMMANDS, name, Entry(LAB, f"About {name}.", "x", "sample"))
    monkeypatch.setitem(application.EXTRAS, "great_expectations_of_nobody", "checks")


def test_help_lists_every_command_and_imports_none():
    script = (
        "import sys; from typer.testing import CliRunner; from jobs.cli.app import app, COMMANDS\n"
        "text = CliRunner().invoke(app, ['--help']).output\n"
        "assert all(name in text for name in COMMANDS), text\n"
        "own = {'jobs.cli', 'jobs.cli.app', 'jobs.cli.console'}\n"
        "assert not {m for m in sys.modules if m.startswith('jobs.cli')} - own\n"
        "assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_questions_about_a_moment_import_neither_settings_nor_assignors():
    """They would double what starts with each question."""
    script = (
        "import sys; from typer.testing import CliRunner; from jobs.cli.app import app\n"
        "for question in ('describe --all', 'groups', 'offsets A-coop-a2d7'):\n"
        "    answer = CliRunner().invoke(app, [*question.split(), '--log', sys.argv[1]])\n"
        "    assert answer.exit_code == 0, answer.output\n"
        "    parts = ('jobs.settings', 'coordinator_core.assignors.registry', 'pyspark')\n"
        "    assert not {*parts} & set(sys.modules), question\n"
    )
    subprocess.run([sys.executable, "-c", script, str(SAMPLE_LOGS)], check=True, timeout=60)


def test_wrong_settings_are_refused_for_a_question_that_needs_none(tmp_path):
    (tmp_path / "wrong.yaml").write_text("clusterr: x\n")
    refused = run_command("groups", "--log", SAMPLE_LOGS, "--config", tmp_path / "wrong.yaml")
    assert refused.exit_code == 2
    assert "clusterr" in refused.stderr


OWN = tuple(application.COMMANDS)


@pytest.mark.parametrize("name", OWN)
def test_every_command_can_be_quiet_and_speak_json_and_says_what_its_options_do(name):
    options = {option: each for each in application.load(name).params for option in each.opts}
    assert {"--quiet", "-q", "--json"} <= set(options)
    assert all(each.help for each in options.values())


def test_no_option_takes_a_number_that_is_not_finite():
    """What is compared to such a number never counts: a gate would pass whatever there is."""
    checked = set()
    for name in OWN:
        command = getattr(importlib.import_module(f"jobs.cli.{COMMANDS[name].module or name}"), f"{name}_command")
        for option, parameter in inspect.signature(command, eval_str=True).parameters.items():
            kind, *described = get_args(parameter.annotation) or [parameter.annotation]
            if float in (kind, *get_args(kind)):
                for text in ("nan", "inf", "-inf", "1e999"):
                    with pytest.raises(UsageError, match="use a finite one"):
                        described[0].callback(float(text))
                checked.add((name, option))
    assert ("findings", "min_score") in checked
    result = run_command("findings", "--log", SAMPLE_LOGS, "--fail-on", "any", "--min-score", "nan")
    assert result.exit_code == 2
    assert "invalid number nan" in result.stderr


def test_what_several_commands_share_is_called_the_same():
    names: dict[str, set[str]] = {}
    for command in OWN:
        for each in application.load(command).params:
            names.setdefault(each.name, set()).add(" ".join(each.opts))
    assert {name: names[name] for name in ("cluster", "config", "log", "tables", "remote", "since")} == {
        "cluster": {"--cluster"},
        "config": {"--config"},
        "log": {"--log"},
        "tables": {"--tables"},
        "remote": {"--remote"},
        "since": {"--since"},
    }


def test_an_error_is_one_line_and_exit_code_1():
    result = run_command("broken", "x.log")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "error: x.log at byte 7: no log at all\n")


@pytest.mark.parametrize("arguments", [["--json", "broken", "x.log"], ["broken", "x.log", "--json"]])
def test_json_errors_carry_file_position_and_cause(arguments):
    result = run_command(*arguments)
    assert result.exit_code == 1
    assert json.loads(result.stderr) == {
        "error": "x.log at byte 7: no log\nat all",
        "file": "x.log",
        "position": 7,
        "cause": "no log\nat all",
        "kind": "LogFormatError",
    }


def test_a_structured_log_says_when_and_in_which_run(capsys):
    console = Console(log_format=LogFormat.JSON)
    console.logged["night"] = "tonight"
    with console.step("decoding"):
        console.warn("set aside", records=3)
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert datetime.fromisoformat(first.pop("time")) <= datetime.fromisoformat(second.pop("time"))
    assert first == {"level": "note", "message": "decoding", "night": "tonight"}
    assert second == {"level": "warning", "message": "set aside", "night": "tonight", "records": 3}


def test_an_unwritable_output_is_one_line():
    result = run_command("unwritable", "/nowhere/at/all")
    assert (result.exit_code, result.stderr) == (1, "error: /nowhere/at/all: No such file or directory\n")


def test_what_spark_raises_in_the_middle_of_an_answer_is_one_line():
    """Where Spark has run in this process, a note before it names the file with its output."""
    result = run_command("failing_in_spark")
    *notes, error = result.stderr.splitlines()
    assert (result.exit_code, error) == (1, "error: [TABLE_OR_VIEW_NOT_FOUND] no such table")
    assert all(note.startswith("note: the output of Spark is in ") for note in notes[:1])
    assert len(notes) <= 1


def test_what_the_jvm_throws_without_a_cause_is_told():
    thrown = "org.apache.spark.DeltaError: [GAP] Versions are not contiguous"
    said = f"An error occurred while calling o56.table.\n: {thrown}\n\tat a.B"
    assert one_line(Py4JError(said)) == "DeltaError: [GAP] Versions are not contiguous"


def test_whatever_the_locale_output_is_utf_8():
    """A consumer of the sample logs commits snowmen."""
    command = [sys.executable, "-m", "jobs", "offsets", "N-mod-10", "--log", str(SAMPLE_LOGS), "--json"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=120, check=True)
    assert "café ☃ 🚀" in {json.loads(line)["metadata"] for line in ran.stdout.splitlines()}


def test_a_missing_extra_says_what_to_install():
    result = run_command("without_extra")
    assert result.exit_code == 1
    assert "pip install " in result.stderr
    assert "[checks]'" in result.stderr
    assert "install 'coordinator-audit[" not in result.stderr, "no index has that name: anyone could take it"


def test_wrong_usage_is_exit_code_2():
    assert run_command("no-such-command").exit_code == 2
    assert run_command("broken").exit_code == 2


def test_a_mistyped_command_is_answered_with_the_nearest_ones():
    result = run_command("descrbe")
    assert result.exit_code == 2
    assert "Did you mean 'describe'" in result.stderr


def test_version_is_the_installed_one():
    result = run_command("--version")
    assert (result.exit_code, result.stdout) == (0, f"coordinator-audit {software_version()}\n")


RUNS_ALONE = [name for name in OWN if name != "serve" and not re.search("--tables|kafka:", COMMANDS[name].example)]
"""``serve`` runs until it is ended."""


@pytest.mark.parametrize("name", RUNS_ALONE)
def test_the_help_of_a_command_has_its_example(name):
    assert COMMANDS[name].example in " ".join(run_command(name, "--help").output.split())


@pytest.mark.parametrize("name", [name for name in RUNS_ALONE if COMMANDS[name].panel != application.INVESTIGATE])
def test_the_example_in_the_help_of_a_command_runs(name, tmp_path, monkeypatch):
    """From the root of a checkout; what an example writes goes elsewhere. Those of questions: ``test_arrow_start``."""
    monkeypatch.chdir(ROOT)
    arguments = COMMANDS[name].example.split()
    if "--out" in arguments:
        arguments[arguments.index("--out") + 1] = str(tmp_path / arguments[-1])
    assert text_of_command(name, *arguments) or list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(set(OWN) - set(RUNS_ALONE)))
def test_the_example_with_tables_or_a_cluster_has_options_that_the_command_has(name):
    options = {option for each in application.load(name).params for option in each.opts}
    assert {each for each in COMMANDS[name].example.split() if each.startswith("--")} <= options


def test_pages_name_options_that_commands_have():
    named = re.compile(rf"(?:coordinator-audit |`)({'|'.join(OWN)})( (?:[^`\n]|\\\n)*)")
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    used = {
        (name, option)
        for page in pages
        for name, rest in named.findall(page.read_text(encoding="utf-8"))
        for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest.partition(" #")[0])
    }
    there = {(name, option) for name in OWN for each in application.load(name).params for option in each.opts}
    assert {("explain", "--log"), ("findings", "--fail-on")} <= used
    assert used <= there
