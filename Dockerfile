# docker build -t coordinator-audit .
# docker run --rm -v "$PWD:/data" coordinator-audit findings --log /data/dump
# Files are written by the user audit (uid 1000): make the folder writable for it, or use --user for commands without Spark.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/* \
  && useradd --create-home --uid 1000 audit

# Spark, Delta's jars and all other dependencies: a layer that is built again only when the dependencies change.
COPY pyproject.toml requirements-dev.lock /dependencies/
RUN python -c "import tomllib; project = tomllib.load(open('/dependencies/pyproject.toml', 'rb')); \
extras = project['project']['optional-dependencies']; \
print(*project['build-system']['requires'], *project['project']['dependencies'], \
*extras['spark'], *extras['checks'], *extras['live'], sep='\\n')" > /dependencies/requirements.txt \
  && pip install --no-cache-dir --constraint /dependencies/requirements-dev.lock --requirement /dependencies/requirements.txt
# It starts Spark once, so that containers need no network. jobs/tables/session.py looks for the jars in this folder.
RUN python -c "import sys; from delta import configure_spark_with_delta_pip as with_delta; \
from pyspark.sql import SparkSession; builder = SparkSession.builder.master('local[1]'); \
with_delta(builder.config('spark.jars.ivy', sys.prefix + '/ivy')).getOrCreate().stop()"

# The code: the layer that changes.
COPY . /src
RUN pip install --no-cache-dir --no-deps --no-build-isolation /src && rm -rf /src
USER 1000
WORKDIR /home/audit
ENTRYPOINT ["coordinator-audit"]
