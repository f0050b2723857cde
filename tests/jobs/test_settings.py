"""Settings: later layers win key by key, and a mistake is named with its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_core.errors import InputError
from jobs import settings


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
        ("spark: {mastre: x}", r"mine.yaml: unknown setting spark.mastre; did you mean spark.master\?"),
        ("spark: {master: [1]}", r"mine.yaml: spark.master: Input should be a valid string"),
        ("- a\n", r"settings are a mapping, this is a list"),
        ("a: [", r"not YAML"),
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
    assert told["spark.conf.spark.ui.enabled"].origin.endswith("defaults.yaml")


def test_a_flag_without_a_value_is_an_input_error() -> None:
    """It names what was given."""
    with pytest.raises(InputError, match=r"'spark' is no NAME=VALUE"):
        settings.assignments(["spark"])
