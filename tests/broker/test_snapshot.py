"""Snapshots of a real broker, as an operator takes them: with and without TLS and a login, and what is refused."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from jobs.relations.settings import read_settings
from jobs.sources.snapshot_files import read_topics
from jobs.tables.folder_reader import FolderReader
from tests.broker.kafka import broker, free_ports
from tests.broker.test_broker import separately
from tests.commands import rows_of_command, run_command

LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
LEVEL = 30
"""The metadata version of Kafka 4.3.1."""


@dataclass
class Secured:
    """A broker with a listener for each protocol, and a folder for settings."""

    ports: dict[str, int]
    home: Path

    def address(self, protocol: str) -> str:
        return f"kafka://localhost:{self.ports[protocol]}"

    def settings(self, name: str, **changed: str) -> list[str]:
        """The option with settings that log in with a name; the password is the same word."""
        given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": name}
        given |= {"sasl.password": name, "ssl.ca.location": str(self.home / "ca.pem")}
        file = self.home / f"{name}-{len(list(self.home.iterdir()))}.yaml"
        file.write_text(json.dumps({"kafka": given | {key.replace("_", "."): value for key, value in changed.items()}}))
        return ["--config", str(file)]

    def snapshot(self, protocol: str, *options: str, out: Path) -> Result:
        return run_command("snapshot", self.address(protocol), "--out", out, "--quiet", *options)


def certificate(home: Path) -> Path:
    """A key store of the broker; its certificate is in ca.pem."""
    store = home / "store.p12"
    options = ["-keystore", str(store), "-storetype", "PKCS12", "-storepass", "secret", "-alias", "broker"]
    made = ["-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=DNS:localhost"]
    subprocess.run(["keytool", *made, *options], check=True, capture_output=True)
    exported = subprocess.run(["keytool", "-exportcert", "-rfc", *options], check=True, capture_output=True)
    (home / "ca.pem").write_bytes(exported.stdout)
    return store


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The user ``admin`` may do everything, ``guest`` nothing."""
    home = tmp_path_factory.mktemp("secured")
    controller, *free = free_ports(1 + len(LISTENERS))
    ports = dict(zip(LISTENERS, free, strict=True))
    store = certificate(home)
    listeners = ",".join(f"{name}://localhost:{port}" for name, port in ports.items())
    users = " ".join(f'user_{name}="{name}"' for name in ("admin", "guest"))
    jaas = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    changed = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in LISTENERS) + ",CONTROLLER:PLAINTEXT",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "secret",
        "sasl.enabled.mechanisms": "PLAIN",
        **{f"listener.name.{name.lower()}.plain.sasl.jaas.config": jaas for name in LISTENERS[1:]},
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    with broker(home, ports=(ports["PLAINTEXT"], controller), changed=changed):
        _groups(f"localhost:{ports['PLAINTEXT']}")
        yield Secured(ports, home)


def _groups(servers: str) -> None:
    """Ten records, a group that has read them, and a config of the group that is no default."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    config = {"bootstrap.servers": servers}
    entry = ConfigEntry("consumer.session.timeout.ms", "15000", incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.GROUP, "orders", incremental_configs=[entry])
    admin = AdminClient(config)
    for future in admin.incremental_alter_configs([wanted]).values():
        future.result()
    producer = Producer(config)
    for number in range(10):
        producer.produce("orders", value=str(number))
    producer.flush()
    consumer = Consumer({**config, "group.id": "orders", "group.protocol": "consumer", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    read = 0
    while read < 10:
        message = consumer.poll(60)
        assert message is not None
        read += message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()


def settings_in(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    rows = map(json.loads, file.read_text().splitlines())
    return {(row["resource_type"], row["resource"]): row["configs"] for row in rows if "resource" in row}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL"])
def test_features_and_configs_of_brokers_and_groups(secured: Secured, tmp_path: Path, protocol: str) -> None:
    out = tmp_path / "cluster.jsonl"
    result = secured.snapshot(protocol, *([] if protocol == "PLAINTEXT" else secured.settings("admin")), out=out)
    assert (result.exit_code, result.stderr) == (0, "")
    found = settings_in(out)
    assert found["SUPPORTED_FEATURES", "1"]["metadata.version"] == str(LEVEL)
    assert {"group.version", "share.version", "streams.version"} < found["SUPPORTED_FEATURES", "1"].keys()
    assert found["FINALIZED_FEATURES", ""]["group.version"] == "1"
    assert found["BROKER", "1"]["group.consumer.assignors"] == "uniform,range"
    assert found["GROUP", "orders"]["consumer.session.timeout.ms"] == "15000"
    assert found["GROUP", "orders"]["share.session.timeout.ms"] == "12000"  # the broker's default
    history = read_topics(out)
    assert history.broker_levels(history.last_seen_ms) == (LEVEL, LEVEL)
    assert history.group_config("orders", "consumer.session.timeout.ms", history.last_seen_ms) == "15000"
    assert history.default_assignor(history.last_seen_ms) == "uniform"


def test_a_user_without_rights_gets_warnings_and_what_anybody_may_know(secured: Secured, tmp_path: Path) -> None:
    out = tmp_path / "cluster.jsonl"
    result = secured.snapshot("SASL_SSL", *secured.settings("guest"), out=out)
    assert result.exit_code == 0
    assert "the cluster shows no topics: it has none, or this user may not describe them" in result.stderr
    assert "the snapshot has no configs of brokers: Cluster authorization failed" in result.stderr
    assert [kind for kind, _ in settings_in(out)] == ["SUPPORTED_FEATURES", "FINALIZED_FEATURES"]


@pytest.mark.parametrize(
    ("protocol", "changed", "said"),
    [
        ("SASL_SSL", {"sasl_password": "x"}, "Authentication failed: Invalid username or password"),
        ("SASL_PLAINTEXT", {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}, "PLAIN"),
        ("SASL_SSL", {"ssl_ca_location": ""}, "certificate verify failed"),
        ("SASL_SSL", {"security_protocol": "SASL_PLAINTEXT"}, "or this port is not one of security.protocol"),
    ],
)
def test_a_refused_client_reads_one_line(
    secured: Secured, tmp_path: Path, protocol: str, changed: dict[str, str], said: str
) -> None:
    result = secured.snapshot(protocol, *secured.settings("admin", **changed), out=tmp_path / "x")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_ingest_stores_snapshots_and_answers_lag_and_settings(secured: Secured, tmp_path: Path) -> None:
    live, options = f"{secured.address('SASL_SSL')}/__consumer_offsets", secured.settings("admin")
    tables = str(tmp_path / "tables")
    steps = separately("nightly", live, "--tables", tables, *options, "--json")
    assert {each["ended"] for each in steps} <= {"done", "skipped"}
    assert next(each for each in steps if each["step"] == "ingest")["counts"]["snapshots"] == 2
    lag: list[dict[str, Any]] = rows_of_command("offsets", "orders", "--tables", tables)
    assert [(each["endOffset"], each["lag"]) for each in lag] == [(10, 0)]
    shown = read_settings(FolderReader(tables), "default")
    (run,) = shown.levels
    assert run.levels == (LEVEL, LEVEL)
    assert run.first_ms < run.last_ms
    assert {row["verdict"] for row in rows_of_command("audit", "--tables", tables) if "verdict" in row} == {"identical"}


def test_a_refused_ingest_ends_with_one_error(secured: Secured, tmp_path: Path) -> None:
    live = f"{secured.address('SASL_SSL')}/__consumer_offsets"
    options = secured.settings("admin", sasl_password="x")
    command = [sys.executable, "-m", "jobs", "ingest", live, "--tables", str(tmp_path / "t"), *options, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    warning, error = (line for line in done.stderr.splitlines() if line.startswith(("warning:", "error:")))
    assert warning.startswith("warning: no snapshot of the cluster was taken: ")
    assert "Invalid username or password" in error
    assert "|FAIL|" not in done.stderr
