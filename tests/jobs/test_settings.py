"""Settings: later layers win key by key, and a mistake is named with its origin."""

import json
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from pydantic import BaseModel

from coordinator_core.errors import InputError, UsageError
from jobs import settings
from jobs.settings import EngineLimits, Settings, load
from jobs.tables.spark_errors import one_line
from tests.commands import run_command


def test_a_file_overrides_defaults_the_environment_a_file_and_a_flag_all(tmp_path: Path) -> None:
    """Other keys of the same section stay as they were below."""
    file = tmp_path / "mine.yaml"
    file.write_text("spark: {master: 'local[3]', conf: {spark.driver.memory: 5g}}")
    loaded = settings.load(file, {})
    assert (loaded.spark.master, loaded.spark.conf["spark.driver.memory"]) == ("local[3]", "5g")
    assert loaded.spark.conf["spark.ui.enabled"] == "false"

    environment = {"COORDINATOR_AUDIT_SPARK__MASTER": "local[4]", "UNRELATED": "1"}
    assert settings.load(file, environment).spark.master == "local[4]"
    flags = {"spark.master": "local[5]", "spark.remote": None}
    assert settings.load(file, environment, flags).spark.master == "local[5]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("spark: {mastre: x}", r"mine.yaml:1: unknown setting spark.mastre; did you mean spark.master\?"),
        ("spark:\n  remote: x\n  master: [1]", r"mine.yaml:3: spark.master: Input should be a valid string"),
        ("checks: {null: n}", r"mine.yaml:1: checks.None: Keys should be strings"),
        ("- a\n", r"mine.yaml: .*mapping.*list"),
        ("a: [", r"mine.yaml: .*YAML"),
    ],
)
def test_a_mistake_names_its_file_and_the_nearest_key(tmp_path: Path, text: str, complaint: str) -> None:
    """One line, in the error tree."""
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=complaint):
        settings.load(file, {})


def test_an_unreadable_file_is_an_input_error(tmp_path: Path) -> None:
    """Not a traceback."""
    with pytest.raises(InputError, match="cannot be read"):
        settings.load(tmp_path / "missing.yaml", {})


def test_every_effective_setting_tells_its_origin(tmp_path: Path) -> None:
    """The last layer that gave a value is named, the value is the effective one."""
    file = tmp_path / "mine.yaml"
    file.write_text("cluster: mine\nspark: {conf: {spark.driver.memory: 5g}}")
    flags = settings.assignments(["spark.master=local[5]"])
    told = {
        each.name: each for each in settings.explain(settings.layers(file, {"COORDINATOR_AUDIT_TABLES": "t"}, flags))
    }
    assert told["cluster"][1:] == ("mine", str(file))
    assert told["spark.conf.spark.driver.memory"][1:] == ("5g", str(file))
    assert told["spark.master"][1:] == ("local[5]", "flag for spark.master")
    assert told["tables"][1:] == ("t", "environment variable COORDINATOR_AUDIT_TABLES")
    assert told["spark.conf.spark.ui.enabled"].origin == "default"


def test_config_shows_values_and_origins_but_no_secrets(tmp_path: Path) -> None:
    """As lines for people, and as objects."""
    file = tmp_path / "mine.yaml"
    file.write_text("cluster: prod\nkafka: {sasl.username: me, sasl.password: hunter2}")
    command = ["config", "--config", str(file), "--set", "nightly.report=r.html"]
    told = run_command(*command).stdout.splitlines()
    assert f'cluster: "prod"  # {file}' in told
    assert f'kafka.sasl.password: "***"  # {file}' in told
    assert "input.paths: []  # default" in told
    lines = map(json.loads, run_command(*command, "--json").stdout.splitlines())
    told_by = {line["setting"]: (line["value"], line["from"]) for line in lines}
    assert told_by["nightly.report"] == ("r.html", "flag for nightly.report")
    assert told_by["kafka.sasl.password"] == ("***", str(file))
    assert told_by["kafka.sasl.username"] == ("me", str(file))


SECRETS = {
    "COORDINATOR_AUDIT_SPARK__REMOTE": "sc://spark.example:443/;token=dapi-swordfish;user_id=me",
    "COORDINATOR_AUDIT_KAFKA": "{sasl.oauthbearer.client.secret: swordfish-1, ssl.key.pem: swordfish-2}",
    "COORDINATOR_AUDIT_SPARK__CONF": "{fs.azure.account.key.lake.dfs.core.windows.net: swordfish-3, "
    "spark.hadoop.fs.s3a.session.token: swordfish-4, fs.azure.sas.fixed.token: swordfish-5, "
    "spark.driver.extraJavaOptions: -Dpassword=swordfish-6, fs.azure.account.oauth2.client.id: swordfish-7}",
    "COORDINATOR_AUDIT_TABLES": "s3://key:swordfish-8@bucket/tables?sig=swordfish-9",
}


def test_whatever_is_not_known_to_be_harmless_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """In what ``config`` shows, and in errors: also of libraries, which repeat what they were given."""
    for name, text in SECRETS.items():
        monkeypatch.setenv(name, text)
    for options in ([], ["--json"]):
        told = run_command("config", *options)
        assert told.exit_code == 0, told.output
        assert "swordfish" not in told.output
        assert "s3://***@bucket/tables?***" in told.stdout
    asked = run_command("groups", "--tables", SECRETS["COORDINATOR_AUDIT_TABLES"])
    assert asked.exit_code == 1
    assert "swordfish" not in asked.output
    failed = one_line(ValueError(f"cannot connect to {SECRETS['COORDINATOR_AUDIT_SPARK__REMOTE']}"))
    assert "swordfish" not in failed


@pytest.mark.parametrize(
    "text",
    [
        '{sasl.password: "swordfish',
        "{sasl.password: *swordfish}",
        "{sasl.password: !swordfish x}",
        "{sasl.password: swordfish: swordfish}",
        "{sasl.password=swordfish}",
        "sasl.password=swordfish",
        "[swordfish]",
        "{sasl.password: 'swordfish\u0007'}",
        "{sasl.password: !!timestamp swordfish}",
        "{sasl.password: [swordfish]}",
        "{sasl.password: {null: swordfish}}",
        "[" * 5000 + "swordfish",
    ],
)
def test_settings_that_cannot_be_read_are_not_repeated(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A password, with one character too few around it."""
    monkeypatch.setenv("COORDINATOR_AUDIT_KAFKA", text)
    told = run_command("config")
    assert (told.exit_code, type(told.exception)) == (2, SystemExit)
    assert "COORDINATOR_AUDIT_KAFKA" in told.stderr
    assert "swordfish" not in told.output


def test_a_flag_without_a_value_is_an_input_error() -> None:
    """It names what was given."""
    with pytest.raises(InputError, match=r"'spark'.*NAME=VALUE"):
        settings.assignments(["spark"])


def test_what_is_text_needs_no_quotes(tmp_path: Path) -> None:
    """YAML takes it for a number, a truth or a date; the settings know better."""
    file = tmp_path / "mine.yaml"
    file.write_text("cluster: 2026-11-21\nkafka: {sasl.password: 0123}\nspark: {conf: {a: 8, spark.ui.enabled: true}}")
    loaded = settings.load(file, {})
    assert (loaded.cluster, loaded.kafka) == ("2026-11-21", {"sasl.password": "0123"})
    assert (loaded.spark.conf["a"], loaded.spark.conf["spark.ui.enabled"]) == ("8", "true")


def test_numbers_truths_and_nothing_are_read_from_text() -> None:
    """As the model says, from each layer."""
    environment = {
        "COORDINATOR_AUDIT_CLUSTER": "007",
        "COORDINATOR_AUDIT_AUDIT__JDK": "21",
        "COORDINATOR_AUDIT_MAINTENANCE__OPTIMIZE": "no",
        "COORDINATOR_AUDIT_MAINTENANCE__VACUUM_HOURS": "null",
        "COORDINATOR_AUDIT_INPUT__PATHS": "[a, b]",
    }
    loaded = settings.load(None, environment, settings.assignments(["maintenance.every_days=0.5"]))
    assert (loaded.cluster, loaded.audit.jdk, loaded.input.paths) == ("007", 21, ["a", "b"])
    kept = loaded.maintenance
    assert (kept.optimize, kept.vacuum_hours, kept.every_days) == (False, None, 0.5)


def numbers_with_a_point(section: type, prefix: str = "") -> Iterator[str]:
    """The dotted names of settings that take a number with a point."""
    for name, kind in get_type_hints(section).items():
        if isinstance(kind, type) and (issubclass(kind, BaseModel) or is_dataclass(kind)):
            yield from numbers_with_a_point(kind, f"{prefix}{name}.")
        elif float in (kind, *get_args(kind)):
            yield prefix + name


def test_no_setting_takes_a_number_that_is_not_finite() -> None:
    """What is compared to such a number never counts: a gate would pass whatever there is."""
    names = [*numbers_with_a_point(Settings)]
    assert {"checks.findings.min_score", "findings.imbalance_ratio", "maintenance.keep_values_days"} < {*names}
    for name in names:
        for text in ("nan", "inf", "-inf", ".nan", "1e999"):
            with pytest.raises(UsageError, match=f"{name}: "):
                load(environment={}, flags={name: text})
    accepted = {"gates.accepted": [{"until": "2027-01-01", "reason": "r", "max_score": "nan"}]}
    with pytest.raises(UsageError, match="max_score: "):
        load(environment={}, flags=accepted)


def test_days_before_today_have_a_date() -> None:
    """A longer time would end a night in an error of its calendar."""
    for name in ("maintenance.every_days", "maintenance.keep_values_days", "maintenance.vacuum_hours"):
        with pytest.raises(UsageError, match=f"{name}: Input should be less than or equal to"):
            load(environment={}, flags={name: "1e9"})
    chosen = load(environment={}, flags={"maintenance.every_days": "1e5", "nightly.lease_minutes": "144e6"})
    assert datetime.now(UTC) - timedelta(days=chosen.maintenance.every_days or 0)
    assert datetime.now(UTC) - timedelta(minutes=chosen.nightly.lease_minutes)


def test_a_release_that_nobody_knows_is_named_with_its_layer() -> None:
    """Also where no field's type tells."""
    with pytest.raises(UsageError, match=r"^environment variable COORDINATOR_AUDIT_AUDIT__PROFILE: no profile 'x'"):
        settings.load(None, {"COORDINATOR_AUDIT_AUDIT__PROFILE": "x"})


def test_the_limits_of_this_process_follow_from_two_settings() -> None:
    assert load(environment={}).engine.limits == EngineLimits()
    twice = load(environment={}, flags={"engine.memory_mb": "512", "engine.copied_mb": "1"}).engine.limits
    assert (twice.rows, twice.staged_bytes, twice.copied_bytes) == (1_000_000, 512 << 20, 1 << 20)
    assert twice.replayed_parts == EngineLimits().replayed_parts
    nothing = load(environment={}, flags={"engine.memory_mb": "-1"}).engine.limits
    assert nothing == replace(EngineLimits.nothing(), copied_bytes=8 << 20)
