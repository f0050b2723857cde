"""Tests of which client a member is."""
