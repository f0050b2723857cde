# docker build -t coordinator-audit .
# docker run --rm -v "$PWD:/data" coordinator-audit findings --log /data/dump
# Files are written by the user audit (uid 1000): make the folder writable for it, or use --user for commands without Spark.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY . /src
# The last step downloads Delta's jars and starts Spark once, so that containers need no network.
RUN pip install --no-cache-dir '/src[spark,checks,live]' && rm -rf /src && python -m jobs.tables.session \
  && useradd --create-home --uid 1000 audit
USER audit
WORKDIR /home/audit
ENTRYPOINT ["coordinator-audit"]
