"""Clusters made up by a scenario and a seed: clients drive the coordinator model, and what it writes becomes a log."""
