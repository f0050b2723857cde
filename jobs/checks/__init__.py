"""Data-quality checks of the tables."""
