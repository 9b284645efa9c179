# spamd in one small image: no compiler, no root, one volume.
#
#   docker build --tag spamd .
#   docker run --detach --name spamd --publish 127.0.0.1:8025:8025 --volume spamd:/var/lib/spamd spamd
#
# `make test-image` builds it and takes a mail through it.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY .ci/constraints.txt .ci/constraints.txt
COPY migrations migrations
COPY spamd spamd
# The newer pip lives in a environment of its own: the one that goes into the image has none.
RUN python3 -m venv /opt/pip \
 && /opt/pip/bin/pip install --no-cache-dir --constraint .ci/constraints.txt --upgrade pip \
 && python3 -m venv --without-pip /opt/spamd \
 && /opt/pip/bin/pip --python /opt/spamd/bin/python install --no-cache-dir \
      --constraint .ci/constraints.txt --build-constraint .ci/constraints.txt '.[uvloop]'

FROM ${BASE}
RUN groupadd --gid 8025 spamd \
 && useradd --uid 8025 --gid 8025 --no-create-home --home-dir /var/lib/spamd \
      --shell /usr/sbin/nologin spamd \
 && install -d -o spamd -g spamd -m 0750 /var/lib/spamd
COPY --from=build /opt/spamd /opt/spamd
COPY config/image.toml /etc/spamd/spamd.toml
COPY config/image-health.py /etc/spamd/health.py
ENV PATH=/opt/spamd/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 8025:8025
WORKDIR /var/lib/spamd
VOLUME /var/lib/spamd
EXPOSE 8025 11333
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
  CMD ["python3", "/etc/spamd/health.py"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["spamd"]
CMD ["serve"]
