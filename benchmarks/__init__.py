"""Ratios against named references, and the logs they are measured on."""
