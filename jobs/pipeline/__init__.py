"""The steps of a nightly run."""
