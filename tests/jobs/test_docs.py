"""The pages that state facts of the code are what the code says now."""

from __future__ import annotations

import pytest

from jobs.docs import DOCS, pages


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_current(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run python -m jobs.docs"
