"""Answers read from the tables."""
