"""Recompute each recorded target assignment and judge it."""
