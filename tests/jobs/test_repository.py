"""Files for contributors: the lock file, the image, the issue templates, the targets of make, the CI examples."""

import re
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobs.cli.app import COMMANDS
from tests.shared_data import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORM_PARTS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def locked() -> list[Requirement]:
    lines = (line.split("#")[0].strip() for line in LOCK.splitlines())
    return [Requirement(line) for line in lines if line]


@pytest.mark.parametrize("extra", ["dependencies", "spark", "checks", "live", "dev"])
def test_the_lock_file_agrees_with_the_project(extra: str) -> None:
    pins = {canonicalize_name(each.name): each for each in locked()}
    for text in PROJECT["dependencies"] if extra == "dependencies" else EXTRAS[extra]:
        wanted = Requirement(text)
        pin = pins.get(canonicalize_name(wanted.name))
        assert pin is not None, f"{wanted.name} is not locked: make lock"
        (version,) = [each.version for each in pin.specifier]
        assert wanted.specifier.contains(version), f"{pin} does not fit {wanted}: make lock"


def test_the_lock_file_pins_versions_and_names_no_index() -> None:
    assert all([each.operator for each in pin.specifier] == ["=="] for pin in locked())
    assert not re.search(r"://|--|^-", LOCK, re.MULTILINE)


def instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_keeps_its_layer_of_spark_when_code_changes() -> None:
    lines = instructions()
    (code,) = [number for number, line in enumerate(lines) if line == "COPY . /src"]
    before, after = lines[:code], lines[code + 1 :]
    (dependencies,) = [line for line in before if line.startswith("COPY")]
    assert dependencies.split()[1:-1] == ["pyproject.toml", "requirements-dev.lock"]
    assert any("pip install" in line and "--requirement" in line for line in before)
    assert any("configure_spark_with_delta_pip" in line for line in before)
    installs = [line for line in after if "pip install" in line]
    assert installs
    assert all("--no-deps" in line and "--no-build-isolation" in line for line in installs)
    assert not any("apt-get" in line or "Session" in line for line in after)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"pyproject.toml", "requirements-dev.lock", "conf", "schemas"} & set(ignored)


def test_the_python_of_the_image_prints_requirements() -> None:
    """The text between the quotes, run here as the shell of the image would."""
    (line,) = [each for each in instructions() if "tomllib" in each]
    code = re.findall(r'python -c "(.*?)"', line)[0].replace("/dependencies/", f"{ROOT}/").replace("\\\\", "\\")
    printed: list[str] = []
    names = {"print": lambda *texts, sep: printed.extend(texts)}
    exec(code, names)
    assert {*PROJECT["dependencies"], *EXTRAS["spark"], *EXTRAS["checks"], *EXTRAS["live"]} < set(printed)
    assert [Requirement(each) for each in printed]


@pytest.mark.parametrize("file", [each for each in TEMPLATES if each.stem != "config"], ids=lambda file: file.stem)
def test_an_issue_template_is_a_form_of_github(file) -> None:
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "body", "labels", "title"}
    parts = form["body"]
    ids = [part["id"] for part in parts if part["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    for part in parts:
        assert part["type"] in FORM_PARTS
        assert set(part) <= {"type", "id", "attributes", "validations"}
        assert part["attributes"]["value" if part["type"] == "markdown" else "label"]
        assert part["type"] not in ("dropdown", "checkboxes") or len(part["attributes"]["options"]) > 0
    commands = set(re.findall(r"`coordinator-audit ([a-z]+)", file.read_text(encoding="utf-8")))
    assert commands <= set(COMMANDS)


def test_there_is_a_template_for_each_kind_of_issue() -> None:
    assert [file.stem for file in TEMPLATES] == ["bug", "config", "question", "wrong_verdict"]
    coordinates = [part for part in yaml.safe_load(TEMPLATES[0].read_text())["body"] if part.get("id") == "coordinates"]
    assert coordinates[0]["validations"] == {"required": True}


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_there_is_a_workflow_for_each_tier_that_needs_no_broker() -> None:
    assert [file.stem for file in WORKFLOWS] == ["browser", "clients", "docs", "lint", "quick", "wheel", "wide"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_runs_what_is_there(file) -> None:
    text = file.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert {"name", "permissions", "jobs"} <= set(workflow)
    assert workflow["name"] == file.stem
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(set(step) & {"uses", "run"} for step in steps)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)$", text, re.MULTILINE):
        assert f"\n{target}:" in makefile
    for step in steps:
        action = step.get("uses", "")
        assert not action.startswith("./") or (ROOT / action / "action.yml").exists()
    assert "://" not in text


def test_packages_say_that_they_are_typed() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    for package in packages["targets"]["wheel"]["packages"]:
        assert (ROOT / package / "py.typed").exists()


def test_make_lists_its_targets() -> None:
    command = ["make", "--no-print-directory", "help"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert names == set(phony[1].split()) - {"java"}
    assert {"help", "docs", "setup", "lock"} <= names


def test_no_example_installs_the_project_from_an_index() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for command in re.findall(r"pip install ['\"]?coordinator[-_]audit[^\n`]*", page.read_text(encoding="utf-8")):
            assert " @ git+" in command, f"{page.name}: {command}"
