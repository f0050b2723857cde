"""The wheel in an environment of its own, and as a zip under spark-submit: nothing is taken from the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.jobs.conftest import SAMPLE_LOGS, SMALL
from tests.shared_data import ROOT

pytestmark = pytest.mark.long

LOG = SAMPLE_LOGS / "__consumer_offsets-0"
STEPS = ["ingest", "decode", "replay", "checks", "report"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    subprocess.run(command, check=True)
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment with the wheel, and with our dependencies but without this checkout."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = place / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)], check=True)
    where = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    # A .pth in a folder that is itself named by one is not looked at, so an editable install stays out.
    Path(where.stdout.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return place / "bin"


def settings_file(tmp_path: Path) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"nightly": {"steps": STEPS}, "spark": {"master": "local[2]", "conf": SMALL}}))
    return file


def run(*command: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """In a folder of its own, without anything that names the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    return subprocess.run([*map(str, command)], cwd=home, env=environment, capture_output=True, text=True, check=False)


def test_the_wheel_is_typed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"coordinator_audit/py.typed", "coordinator_core/py.typed", "jobs/py.typed"} <= set(names)


def test_the_wheel_dumps_and_knows_its_settings(scripts: Path, tmp_path: Path) -> None:
    dumped = run(scripts / "coordinator-audit", "dump", LOG, home=tmp_path)
    assert (dumped.returncode, len(dumped.stdout.splitlines())) == (0, 313), dumped.stderr
    config = run(scripts / "coordinator-audit", "config", home=tmp_path)
    assert (config.returncode, config.stdout.splitlines()[0]) == (0, 'tables: "coordinator-audit-tables"  # default')


def test_the_wheels_nightly_needs_no_checkout(scripts: Path, tmp_path: Path) -> None:
    command = [scripts / "coordinator-audit-nightly", LOG, "--tables", "tables", "--config", settings_file(tmp_path)]
    done = run(*command, "--report", "report.html", home=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "report.html"
    assert (tmp_path / "report.html").is_file()


def test_spark_submit_with_the_wheel_as_a_zip_keeps_its_master(wheel: Path, tmp_path: Path) -> None:
    """The settings name another master; what spark-submit was told holds."""
    package = tmp_path / "coordinator_audit.zip"
    shutil.copy(wheel, package)
    main = tmp_path / "main.py"
    main.write_text(
        "from jobs import nightly, settings\n"
        "from jobs.tables import session\n"
        "spark = session.get_or_create(settings.load().spark)\n"
        "assert spark.conf.get('spark.master') == 'local[1]', spark.conf.get('spark.master')\n"
        "assert '.zip' in nightly.__file__, nightly.__file__\n"
        "nightly.main()\n"
    )
    jars = ",".join(map(str, sorted(Path(sys.prefix, "ivy", "jars").glob("io.delta_*.jar"))))
    conf = [text for name, value in SMALL.items() for text in ("--conf", f"{name}={value}")]
    # Its shell script finds Spark with the first python3 of the path, unless this variable names another one.
    python = ["env", f"PYSPARK_PYTHON={sys.executable}"]
    submit = [*python, Path(sys.prefix, "bin", "spark-submit"), "--master", "local[1]", "--jars", jars, *conf]
    night = [LOG, "--tables", "tables", "--config", settings_file(tmp_path), "--report", "report.html"]
    done = run(*submit, "--py-files", package, main, *night, home=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "report.html").is_file()
