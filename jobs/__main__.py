"""``python -m jobs``, and the file that ``spark-submit`` wants."""

from jobs.cli.app import main

if __name__ == "__main__":
    main()
