"""Whatever is not on the list of harmless settings is in no output: random secrets in random places of any command."""

import json
import random
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from coordinator_core.errors import UsageError
from jobs import secret_values
from jobs.cli.output import print_lines
from jobs.tables.spark_errors import one_line
from jobs.watch.webhook import Webhook
from tests.commands import run_command

LETTERS = string.ascii_letters + string.digits + "+/=-_.~!$"
KEYS = (
    "sasl.password",
    "ssl.key.pem",
    "sasl.jaas.config",
    "sasl.oauthbearer.client.secret",
    "x",
    "ssl.keystore.password",
)
SPARK = (
    "spark.hadoop.fs.s3a.secret.key",
    "fs.azure.account.key.l.dfs.core.windows.net",
    "spark.authenticate.secret",
    "spark.databricks.delta.sharing.bearerToken",
    "spark.sql.catalog.token",
    "y.z",
)


class Given(NamedTuple):
    """Where a secret stands: environment variables, arguments, and the text of a file of settings."""

    environment: Mapping[str, str] = MappingProxyType({})
    arguments: tuple[str, ...] = ()
    settings: str = ""


def places(secret: str, choose: random.Random) -> Given:
    """A secret in any place that takes one, written rightly or with a mistake."""
    key, conf = choose.choice(KEYS), choose.choice(SPARK)
    quoted = json.dumps(secret)
    broken = choose.choice(
        (f"{{{key}: {quoted[:-1]}", f"{{{key}: &{secret} *x}}", f"{{{key}: [{quoted}]}}", f"[{quoted}]")
    )
    url = choose.choice((f"s3://key:{secret}@b/t", f"s3a://b/t?token={secret}", f"abfss://c@a.net/t?sig={secret}"))
    remote = f"sc://h:1/;token={secret}"
    every: tuple[Callable[[], Given], ...] = (
        lambda: Given({"COORDINATOR_AUDIT_KAFKA": f"{{{key}: {quoted}}}"}),
        lambda: Given({"COORDINATOR_AUDIT_KAFKA": broken}),
        lambda: Given({"COORDINATOR_AUDIT_SPARK__CONF": f"{{{conf}: {quoted}}}"}),
        lambda: Given({"COORDINATOR_AUDIT_SPARK__REMOTE": remote}),
        lambda: Given({"COORDINATOR_AUDIT_TABLES": url}),
        lambda: Given({f"COORDINATOR_AUDIT_{choose.choice(('PASSWORD', 'KAFAK', 'SPARK'))}": quoted}),
        lambda: Given(settings=f"kafka: {{{key}: {quoted}}}\n"),
        lambda: Given(settings=f"kafka: {broken}\n"),
        lambda: Given(settings=f"spark: {{conf: {{{conf}: {quoted}}}, remote: '{remote}'}}\n"),
        lambda: Given(settings=f"{quoted}: 1\n"),
        lambda: Given(settings=f"input: {{paths: ['{url}']}}\nnightly: {{steps: [x]}}\n"),
        lambda: Given(arguments=("--set", f"kafka={{{key}: {quoted}}}")),
        lambda: Given(arguments=("--set", f"{key}={secret}")),
        lambda: Given(arguments=("--set", secret.replace("=", ""))),
        lambda: Given(arguments=("--set", f"tables={url}")),
    )
    return choose.choice(every)()


@pytest.mark.parametrize("seed", range(60))
def test_no_output_has_a_secret(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(secret_values, "_REMEMBERED", set[str]())
    secret = "S" + "".join(choose.choices(LETTERS, k=choose.randint(8, 40))) + "+S"  # + is in no name
    given = places(secret, choose)
    for name, text in given.environment.items():
        monkeypatch.setenv(name, text)
    file = tmp_path / "settings.yaml"
    file.write_text(given.settings)
    commands = [("config", *given.arguments), ("config", "--json", *given.arguments)]
    if not given.arguments:
        none = str(tmp_path)  # a folder that is not there may be one of the Spark that the settings name
        commands += [("groups", "--tables", none), ("trend", "--tables", none), ("nightly", f"{none}/x.log")]
    for command in commands:
        told = run_command(*command, "--config", file)
        assert secret not in told.output, command
        assert told.exception is None or isinstance(told.exception, SystemExit)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("s3://key:a/b+c@bucket/t", "s3://***@bucket/t"),
        ("s3://bucket/t?sig=swordfish", "s3://bucket/t?***"),
        ("abfss://box@account.net/t?sig=swordfish", "abfss://box@account.net/t?***"),
        ("abfss://box@account.net/t", "abfss://box@account.net/t"),
        ("https://user@host/t", "https://***@host/t"),
        ("/folder/a@b?c", "/folder/a@b?c"),
    ],
)
def test_what_a_location_has_besides_its_place_is_hidden(location: str, shown: str) -> None:
    assert secret_values.without_credentials(location) == shown


def test_a_webhook_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a webhook of Slack is its password; Python's errors repeat it."""
    monkeypatch.setattr(secret_values, "_REMEMBERED", set[str]())
    Webhook("https://hooks.example/services/T0/B0/sword fish", print, "shop").close()
    failed = one_line(ValueError("URL can't contain control characters. '/services/T0/B0/sword fish' (found ' ')"))
    assert "sword" not in failed
    with pytest.raises(UsageError) as refused:
        Webhook("hooks.example/services/T0/B0/swordfish", print, "shop")
    assert "swordfish" not in str(refused.value)


def test_a_word_that_is_the_path_of_a_webhook_stays_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_values, "_REMEMBERED", set())
    Webhook("http://alerts:9093/never", pytest.fail, "east").close()
    assert secret_values.redacted("http://alerts:9093/never: they were never replicated").endswith(
        ":9093***: they were never replicated"
    )


@pytest.mark.parametrize("command", ["watch", "snapshot"])
def test_a_password_in_the_url_of_a_cluster_is_refused_and_not_repeated(command: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "x.jsonl")) if command == "snapshot" else ()
    told = run_command(command, "kafka://me:swordfish@localhost:1", *out)
    assert told.exit_code == 2
    assert "swordfish" not in told.output
    assert "user and password are settings" in told.stderr


def test_the_title_of_a_table_has_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the location of the tables."""
    monkeypatch.setattr(secret_values, "_REMEMBERED", set[str]())
    secret_values.remember("tables", "s3://key:swordfish@bucket/t")
    print_lines([], as_json=False, title="nightly run at s3://key:swordfish@bucket/t")
    assert "swordfish" not in capsys.readouterr().out
