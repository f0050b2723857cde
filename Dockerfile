# docker build -t coordinator-audit . && docker run --user "$(id -u)" -v "$PWD:/data" coordinator-audit report --log /data/dump --out /data/report.html
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir '/src[spark,checks,live]' && rm -rf /src && useradd --create-home audit
USER audit
WORKDIR /home/audit
ENTRYPOINT ["coordinator-audit"]
