# One image for every service of docker-compose.yml: Airflow, Java for Spark, the project, and the JVM jars it needs, fetched and verified at build.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 50000 sluice

ENV JAVA_HOME=/usr/lib/jvm/default-java \
    PYTHONUNBUFFERED=1 \
    SLUICE_CACHE=/opt/sluice-cache \
    SLUICE_PROJECT=/opt/sluice \
    SLUICE_ROOT=/data/sluice \
    LANDING=/data/landing \
    AIRFLOW_HOME=/opt/airflow

RUN ln -s "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")" /usr/lib/jvm/default-java \
 && mkdir -p /opt/sluice /opt/airflow/logs /opt/sluice-cache /data/sluice /data/landing \
 && chown -R sluice:sluice /opt/sluice /opt/airflow /opt/sluice-cache /data

WORKDIR /opt/sluice
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
 # the drivers of Airflow's own database; SQLite, which everything else here uses, needs none
 && pip install --no-cache-dir --no-deps psycopg2-binary==2.9.13 asyncpg==0.32.0

COPY --chown=sluice:sluice pyproject.toml requirements.txt ./
COPY --chown=sluice:sluice include include
COPY --chown=sluice:sluice jobs jobs
COPY --chown=sluice:sluice dags dags
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e . \
 && python -m compileall -q include/sluice

USER sluice
RUN sluice jars fetch core
EXPOSE 8080
