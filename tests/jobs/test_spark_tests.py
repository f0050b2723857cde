"""The tests that go to the processes with Spark are those that use its session."""

import pytest

from tests.conftest import uses_spark
from tests.spark_tests import spark_tests


def test_what_files_say_of_spark_is_what_pytest_collects(request: pytest.FixtureRequest) -> None:
    """Of the tests that run together with this one."""
    names = {item: item.nodeid.partition("[")[0] for item in request.session.items if "tests/jobs/" in item.nodeid}
    assert {name for item, name in names.items() if uses_spark(item)} == spark_tests().keys() & {*names.values()}
    assert len(spark_tests()) > 60
