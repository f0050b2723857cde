"""``spark-submit jobs/nightly.py ARGUMENTS``, and the entry point of a wheel task: the command ``nightly``."""

import sys

from jobs.cli.app import main as command_line


def main() -> None:
    """Run the command ``nightly`` with the arguments of this process."""
    sys.argv.insert(1, "nightly")
    command_line()


if __name__ == "__main__":
    main()
