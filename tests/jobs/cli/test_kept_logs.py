"""``--keep``: logs become tables that answer as the logs do, and of which nothing is read twice."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import Result

from tests.commands import run_command
from tests.shared_data import ROOT

SAMPLES = ROOT / "data/samples"
GROUP = "B-range-5175"


def ask(question: Sequence[str], *options: object) -> Result:
    return run_command(*question, *options)


def asked_of(group: str) -> list[list[str]]:
    return [
        ["groups", "--json"],
        ["commits", group],
        ["history", group, "--json"],
        ["explain", f"{group}@6"],
        ["rebalances"],
        ["audit"],
        ["findings", "--json"],
        ["metrics"],
    ]


def same_answers(questions: Sequence[Sequence[str]], log: Path, place: Path) -> None:
    for question in questions:
        plain, kept = ask(question, "--log", log), ask(question, "--log", log, "--keep", place)
        assert kept.stdout == plain.stdout
        assert kept.exit_code == plain.exit_code, (question, plain.stderr, kept.stderr)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first question leaves the log of the incident."""
    return tmp_path_factory.mktemp("incident") / "kept"


def test_answers_are_the_same_as_without(place: Path) -> None:
    same_answers([["history", GROUP, "--json"], ["findings", "--json"]], SAMPLES / "incident", place)


@pytest.mark.long
@pytest.mark.parametrize("sample", ["incident", "logs", "shop", "share_delivery/logs"])
def test_answers_about_each_sample_are_the_same(sample: str, tmp_path: Path) -> None:
    log = SAMPLES / sample
    groups = [line.split("\t")[0] for line in ask(["groups"], "--log", log).stdout.splitlines()[1:]]
    questions = [*asked_of(GROUP), ["owners", "orders"]]
    questions += [[name, group] for group in groups[:5] for name in ("describe", "offsets", "commits", "whatif", "lag")]
    same_answers(questions, log, tmp_path / "kept")


def test_the_next_question_reads_only_what_is_new(tmp_path: Path) -> None:
    log, place = Path(shutil.copytree(SAMPLES / "incident", tmp_path / "log")), tmp_path / "kept"
    later = log / "__consumer_offsets-1"
    later.rename(tmp_path / later.name)
    first = ask(["findings"], log, "--keep", place)
    assert first.exit_code == 0, first.output
    for file in log.rglob("*.log"):  # as long and as old as before: who reads it again fails
        state = file.stat()
        file.write_bytes(bytes(state.st_size))
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert ask(["findings"], log, "--keep", place).stdout == first.stdout
    (tmp_path / later.name).rename(later)
    whole = ask(["rebalances"], "--log", log, "--keep", place)
    assert whole.stdout == ask(["rebalances"], "--log", SAMPLES / "incident").stdout


def test_a_place_of_something_else_is_refused(place: Path, tmp_path: Path) -> None:
    log = SAMPLES / "incident"
    assert ask(["groups"], "--log", log, "--keep", place).exit_code == 0
    for options, complaint in (
        (["--log", SAMPLES / "shop"], f"{place} keeps the log {log}, and not {SAMPLES / 'shop'}: name another place"),
        (["--log", log, "--cluster", "b"], f"{place} keeps cluster default, and not b: name another place"),
        (["--log", log, "--profile", "kafka-4.0"], "keeps audit.profile unset, and not kafka-4.0: name another place"),
    ):
        refused = ask(["groups"], *options, "--keep", place)
        assert refused.exit_code == 1
        assert complaint in refused.stderr
    (tmp_path / "file").touch()
    assert "is not empty, and keeps no log" in ask(["groups"], "--log", log, "--keep", tmp_path).stderr
    assert ask(["groups"], "--tables", place, "--keep", place).exit_code == 2


def test_what_the_settings_of_the_log_say_counts_for_its_tables(tmp_path: Path) -> None:
    log = Path(shutil.copytree(SAMPLES / "incident", tmp_path / "log"))
    (log / "coordinator-audit.yaml").write_text(
        "cluster: shop\ninput: {broker_logs: ['server*.log'], broker_log_zone: UTC}\naudit: {profile: kafka-4.0}\n"
    )
    same_answers([["explain", f"{GROUP}@6"]], log, tmp_path / "kept")
