"""The Spark session of the jobs' tests, for the recorded logs too."""

from tests.jobs.conftest import spark

__all__ = ["spark"]
