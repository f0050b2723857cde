"""Nights into an object store: ``make test-stores``."""
