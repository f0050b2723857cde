"""Answers read from log files, in this process, without Spark."""
