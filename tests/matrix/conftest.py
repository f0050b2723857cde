"""The Spark session of the tests of the jobs, for answers from tables."""

from tests.jobs.conftest import spark

__all__ = ["spark"]
