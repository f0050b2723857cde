"""How an extra is installed into this copy: never by a name that is on no index."""

import json
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import installation

REQUIRES = [
    "pyarrow>=15",
    "pyspark>=4.0; extra == 'spark'",
    'delta-spark<5,>=4.0 ; extra == "spark"',
    "x; extra == 'y'",
]


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ({"url": "file:///src/my%20copy", "dir_info": {"editable": True}}, "pip install -e '/src/my copy[spark]'"),
        ({"url": "file:///dist/a-1.whl", "archive_info": {}}, "pip install '/dist/a-1.whl[spark]'"),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'coordinator-audit[spark] @ git+https://host/a.git@abc'",
        ),
        ({"url": "https://host/a.whl"}, "pip install 'coordinator-audit[spark] @ https://host/a.whl'"),
        (None, "pip install 'pyspark>=4.0' 'delta-spark<5,>=4.0'"),
    ],
)
def test_the_command_names_where_the_copy_came_from(
    place: dict[str, Any] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if place is None else json.dumps(place)
    found = SimpleNamespace(read_text=lambda name: text, requires=REQUIRES)
    monkeypatch.setattr(installation, "distribution", lambda name: found)
    assert installation.how_to_add("spark") == f"run {command}"


def test_code_that_is_not_installed_is_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    assert installation.how_to_add("checks") == "run pip install '.[checks]' in the checkout"
