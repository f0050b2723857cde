"""Errors of Spark that callers of the Python API see."""

import pytest

from coordinator_core.errors import InputError, UsageError
from jobs.tables.spark_errors import own_errors

OF_A_TASK = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "ingest.py", line 1, in refuse
coordinator_core.errors.InputError: __consumer_offsets-0 offset 3: two clusters
"""


def test_what_a_task_raises_on_purpose_is_an_error_of_this_project() -> None:
    with pytest.raises(InputError, match=r"^__consumer_offsets-0 offset 3: two clusters$") as refused, own_errors():
        raise RuntimeError(OF_A_TASK)
    assert isinstance(refused.value.__cause__, RuntimeError)


@pytest.mark.parametrize("error", [RuntimeError("no such table"), UsageError("--what")])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, own_errors():
        raise error
    assert raised.value is error
