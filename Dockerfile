# The workers' image: fixloop, git with ssh, and a separate user.

# docs/operations.md explains how to pin it by digest.
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /source
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# All packages are verified against the lock's hashes when they enter the wheelhouse, and installed only from there.
COPY requirements.lock ./
RUN python -m venv /opt/fixloop \
 && /opt/fixloop/bin/pip wheel --quiet --no-deps --require-hashes --wheel-dir /wheels -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY workers workers
COPY workflows workflows
COPY config config
RUN /opt/fixloop/bin/pip wheel --quiet --no-index --find-links /wheels --no-deps --wheel-dir /built . \
 && /opt/fixloop/bin/pip install --quiet --no-index --find-links /wheels "$(ls /built/*.whl)[server,mcp,notify,otel]"

FROM ${PYTHON_IMAGE}
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends git openssh-client \
 && rm -rf /var/lib/apt/lists/*
# The owner of the mounted repositories: the workers write refs below refs/fixloop/ there.
ARG UID=10001
# Mounted repositories may still belong to another user, and git would refuse to read them.
RUN git config --system --add safe.directory '*' \
 && useradd --create-home --uid "$UID" fixloop \
 && install -d -o fixloop -g fixloop /cache /cache/mirrors /cache/setups /cache/work /repositories /run/fixloop
COPY --from=build /opt/fixloop /opt/fixloop
# Link only the command: with the environment's `python` first on the PATH, a project that does not declare a
# dependency of fixloop would pass.
RUN ln -s /opt/fixloop/bin/fixloop /usr/local/bin/fixloop
ENV PYTHONUNBUFFERED=1 FIXLOOP_CACHE_DIR=/cache
USER fixloop
WORKDIR /repositories
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD ["fixloop", "worker", "--check"]
CMD ["fixloop", "worker"]
