"""Replay a group's history with another assignor or other settings."""
