"""The fields of records as types: what the decoder yields, and what mypy checks each use against.

``python -m jobs.typed_records`` writes all modules here but ``beyond_schema`` from ``schemas/``.
"""
