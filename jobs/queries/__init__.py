"""Answers to questions about groups: one interface, two implementations."""
