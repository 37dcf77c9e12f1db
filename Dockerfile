# The server, the worker and the command line in one image: `docker run loom serve`, `... worker`, `... token list`.
# The Python is the one that the tests run on.

FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN ["pip", "wheel", "--no-cache-dir", "--no-deps", "--wheel-dir", "/wheels", "."]

FROM python:3.11-slim-bookworm
RUN groupadd --system --gid 10001 loom \
    && useradd --system --uid 10001 --gid loom --home-dir /var/lib/loom --create-home --shell /usr/sbin/nologin loom
# Mounted, not copied: the wheel's own bytes make no layer.
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --disable-pip-version-check "$(echo /wheels/loom-*.whl)[postgres]"

ENV PYTHONUNBUFFERED=1 \
    LOOM_HOME=/var/lib/loom \
    LOOM_HOST=0.0.0.0
USER 10001:10001
WORKDIR /var/lib/loom
EXPOSE 7777
STOPSIGNAL SIGTERM
# /readyz answers within 5 s, and says 503, which raises here, while the store cannot be used.
HEALTHCHECK --interval=10s --timeout=8s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7777/readyz', timeout=7)"]
ENTRYPOINT ["loom"]
CMD ["serve"]
