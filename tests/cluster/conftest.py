"""One cluster, one generated log, and the tables of one quiet night for all tests of this tier."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from benchmarks.generate import generate
from tests.cluster.standalone import QUICK, Standalone, standalone
from tests.shared_data import ROOT

NIGHT_S = 3600
DONE = (0, 3)
"""Exit codes of a night whose steps are all done; checks of the generated log may fail."""

SMALL_LOG = 200_000


class Quiet(NamedTuple):
    """The tables of a night that nothing disturbed, and the seconds that it took."""

    tables: Path
    seconds: float


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers of one core."""
    is_small = request.config.getoption("--cluster-records") < SMALL_LOG
    with standalone(tmp_path_factory.mktemp("cluster"), QUICK if is_small else {}) as made:
        yield made


@pytest.fixture(scope="session")
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated log of four log partitions."""
    place = tmp_path_factory.mktemp("log")
    generate(place, request.config.getoption("--cluster-records"), 500, partitions=4)
    return place


@pytest.fixture(scope="session")
def arguments(request: pytest.FixtureRequest, log: Path) -> list[str]:
    """The dump and the options of a night, but for its tables. A small log is for a try: few steps, little compiled."""
    given = [str(log), "--cluster", "c"]
    if request.config.getoption("--cluster-records") >= SMALL_LOG:
        return given
    settings = yaml.safe_load((ROOT / "conf" / "small.yaml").read_text())
    settings["nightly"] = {"steps": ["ingest", "decode", "replay", "offsets", "findings"]}
    file = log.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(settings))
    return [*given, "--config", str(file)]


@pytest.fixture(scope="session")
def quiet(cluster: Standalone, arguments: list[str], tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    """A night that nothing disturbs."""
    place = tmp_path_factory.mktemp("quiet")
    began = time.monotonic()
    process = cluster.submit(*arguments, "--tables", place / "tables", out=place / "night.out")
    assert process.wait(NIGHT_S) in DONE, (place / "night.out").read_text()[-5000:]
    return Quiet(place / "tables", time.monotonic() - began)
