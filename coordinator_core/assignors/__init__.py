"""Assignors: one module each, one registry, one signature."""
