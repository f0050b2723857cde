"""Which version of this software runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def software_version() -> str:
    """The version installed; a checkout on the path has none."""
    try:
        return version("coordinator-audit")
    except PackageNotFoundError:
        return "checkout"
