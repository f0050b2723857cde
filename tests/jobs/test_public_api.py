"""``coordinator_audit`` is what others import: each public name is there; Spark comes with a name that needs it."""

import subprocess
import sys

import pytest

import coordinator_audit


@pytest.mark.parametrize("name", sorted(coordinator_audit.PUBLIC))
def test_each_public_name_is_documented_and_is_what_the_modules_define(name):
    module, attribute = coordinator_audit.PUBLIC[name].split(":")
    assert getattr(coordinator_audit, name) is getattr(sys.modules[module], attribute)
    assert f"``{name}``" in (coordinator_audit.__doc__ or "")


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'jobs'"):
        _ = coordinator_audit.jobs


def test_importing_the_package_imports_neither_spark_nor_the_jobs():
    script = "import coordinator_audit, sys; assert not {'pyspark', 'jobs', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
