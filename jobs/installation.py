"""This copy: its version, how to add its extras, and the environment variables that set it.

Whoever asks only for them does not load what checks settings.
"""

import json
import re
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from typing import Final
from urllib.parse import unquote, urlsplit

NAME = "coordinator-audit"
OF_EXTRA = re.compile(r"^(?P<needed>[^;]+?)\s*;.*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")

PREFIX: Final = "COORDINATOR_AUDIT_"
"""Of the environment variables that set settings."""


def software_version() -> str:
    """Return the installed version; "checkout" if the code runs without being installed."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "checkout"


def given(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return names and values of the variables that set settings, by name."""
    return [(name, text) for name, text in sorted(environment.items()) if name.startswith(PREFIX)]


def how_to_add(extra: str) -> str:
    """Return the command that installs an extra into this copy.

    It names the place that this copy came from; without one, the packages of the extra. The name of this project alone
    is on no index: whoever took it there could have their code installed.
    """
    try:
        found = distribution(NAME)
    except PackageNotFoundError:
        return f"run pip install '.[{extra}]' in the checkout"
    place = json.loads(found.read_text("direct_url.json") or "{}")
    url = str(place.get("url", ""))
    if url.startswith("file://"):
        folder = unquote(urlsplit(url).path)
        is_editable = place.get("dir_info", {}).get("editable", False)
        return f"run pip install {'-e ' if is_editable else ''}'{folder}[{extra}]'"
    if "vcs_info" in place:
        commit = place["vcs_info"]["commit_id"]
        return f"run pip install '{NAME}[{extra}] @ {place['vcs_info']['vcs']}+{url}@{commit}'"
    if url:
        return f"run pip install '{NAME}[{extra}] @ {url}'"
    return f"run pip install {_packages(found, extra)}"


def _packages(found: Distribution, extra: str) -> str:
    needed = [match for text in found.requires or () if (match := OF_EXTRA.match(text))]
    return " ".join(f"'{match['needed']}'" for match in needed if match["extra"] == extra)
