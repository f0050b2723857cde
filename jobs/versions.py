"""The version of this software."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def software_version() -> str:
    """Return the installed version; "checkout" if the code runs without being installed."""
    try:
        return version("coordinator-audit")
    except PackageNotFoundError:
        return "checkout"
