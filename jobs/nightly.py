"""``spark-submit jobs/nightly.py ARGUMENTS``, and the entry point of a wheel task: the command ``nightly``."""

import sys

from jobs.cli.app import main as command_line


def main() -> None:
    """Run the command ``nightly`` with the arguments of this process. Return if it succeeds.

    Raises:
        SystemExit: it did not succeed. (A wheel task of Databricks takes an exit with code 0 for a failure, too.)
    """
    sys.argv.insert(1, "nightly")
    try:
        command_line()
    except SystemExit as ended:
        if ended.code:
            raise


if __name__ == "__main__":
    main()
