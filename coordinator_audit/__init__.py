"""The public Python API of coordinator-audit. ``jobs`` and ``coordinator_core`` may change at any time.

| name | what it is |
|---|---|
| ``CoordinatorAudit`` | the tables of one cluster in a Spark session: jobs, tables as DataFrames, questions |
| ``Settings``, ``load_settings`` | the settings, as ``coordinator-audit config`` shows them |
| ``spark_session`` | a local Spark session, or a Spark Connect session, with Delta's jars |
| ``decode_key``, ``decode_value``, ``register_functions`` | decoding as functions of Spark columns and of SQL |
| ``Family`` | whose records they decode: of groups, of share state, of Connect workers, or of the cluster |
| ``decode_record`` | one record decoded, from its bytes, without Spark |
| ``recompute_target``, ``profile`` | what Kafka's assignor decides for a group that you describe, in a release |
| ``duckdb_views``, ``delta_rs_views`` | the tables in a folder and their views, for DuckDB and for delta-rs |
| ``CoordinatorAuditError``, ``InputError``, ``UsageError`` | what the functions above raise |
| ``IncompleteLogWarning`` | what the answers of ``CoordinatorAudit`` warn with where the logs lack something |

A name is imported when it is first used, so that importing this package does not import Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from coordinator_core.assignors.case_files.case_types import run_case as recompute_target  # noqa: F401
    from coordinator_core.assignors.profiles import profile as profile
    from coordinator_core.errors import CoordinatorAuditError as CoordinatorAuditError
    from coordinator_core.errors import IncompleteLogWarning as IncompleteLogWarning
    from coordinator_core.errors import InputError as InputError
    from coordinator_core.errors import UsageError as UsageError
    from coordinator_core.records import Family as Family
    from coordinator_core.wire.record_codec import decode_record as decode_record
    from jobs.api import CoordinatorAudit as CoordinatorAudit
    from jobs.settings import Settings as Settings
    from jobs.settings import load as load_settings  # noqa: F401
    from jobs.tables.session import get_or_create as spark_session  # noqa: F401
    from jobs.tables.views import delta_rs_views as delta_rs_views
    from jobs.tables.views import duckdb_views as duckdb_views
    from jobs.udf import decode_key as decode_key
    from jobs.udf import decode_value as decode_value
    from jobs.udf import register as register_functions  # noqa: F401

PUBLIC: Final = {
    "CoordinatorAudit": "jobs.api:CoordinatorAudit",
    "CoordinatorAuditError": "coordinator_core.errors:CoordinatorAuditError",
    "Family": "coordinator_core.records:Family",
    "IncompleteLogWarning": "coordinator_core.errors:IncompleteLogWarning",
    "InputError": "coordinator_core.errors:InputError",
    "Settings": "jobs.settings:Settings",
    "UsageError": "coordinator_core.errors:UsageError",
    "decode_key": "jobs.udf:decode_key",
    "decode_record": "coordinator_core.wire.record_codec:decode_record",
    "decode_value": "jobs.udf:decode_value",
    "delta_rs_views": "jobs.tables.views:delta_rs_views",
    "duckdb_views": "jobs.tables.views:duckdb_views",
    "load_settings": "jobs.settings:load",
    "profile": "coordinator_core.assignors.profiles:profile",
    "recompute_target": "coordinator_core.assignors.case_files.case_types:run_case",
    "register_functions": "jobs.udf:register",
    "spark_session": "jobs.tables.session:get_or_create",
}
"""Each public name, and where it is defined as ``module:name``."""


def __getattr__(name: str) -> Any:
    """Return a public name, imported when it is first used."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = PUBLIC[name].split(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return [*PUBLIC]
