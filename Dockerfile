# docker build -t coordinator-audit .
# docker run --rm -v "$PWD:/data" coordinator-audit findings --log /data/dump
# What it writes belongs to the user audit (1000): give the folder to it, or for commands without Spark say --user.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY . /src
# The last step fetches Delta's jars and sees Spark start, so that containers need no network.
RUN pip install --no-cache-dir '/src[spark,checks,live]' && rm -rf /src && python -m jobs.tables.session \
  && useradd --create-home --uid 1000 audit
USER audit
WORKDIR /home/audit
ENTRYPOINT ["coordinator-audit"]
