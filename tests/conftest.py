"""Test tiers: ``differential`` is collected only where the recorded results lie beside the project."""

from __future__ import annotations

from tests.shared_data import SHARED

collect_ignore = [] if SHARED.is_dir() else ["differential"]
