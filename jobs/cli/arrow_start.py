"""A quick start of Arrow for commands that answer one question."""

import sys

import pyarrow as pa


class _WithoutPandas:
    """An import finder that does not find pandas, and leaves every other module to the finders after it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def start_without_pandas() -> None:
    """Keep Arrow from importing pandas, which it does for the first array that it makes, and which takes most of 1 s.

    Arrow tries it once in a process, and works without it. Any code can import pandas afterwards.
    """
    if "pandas" in sys.modules:
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
