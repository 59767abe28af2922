# molscore in a container. Two targets:
#   runtime   predict, evaluate, inspect, featurize: ONNX Runtime, no torch (the default)
#   train     everything, with a CPU torch
#
#   docker build -t molscore .
#   docker build -t molscore:train --target train .
#   docker run --rm -v "$PWD:/data" molscore predict smiles.txt --model my.molscore
#
# BASE is any Debian-like image with Python 3.11 to 3.13, venv and pip. The PIP_* arguments
# are for sites with package mirrors; PIP_FIND_LINKS may name a folder with a CPU torch wheel.
# `--build-arg MOLSCORE_TORCH=any` lets `train` have a CUDA torch.
ARG BASE=docker.io/library/python:3.12-slim

FROM ${BASE} AS dependencies
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_CERT
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY pyproject.toml constraints.txt ./
RUN python3 -m venv /opt/molscore \
 && python3 -c "import tomllib; \
project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
open('runtime.txt', 'w').write('\n'.join(project['dependencies'])); \
open('train.txt', 'w').write('\n'.join(project['optional-dependencies']['train']))" \
 && /opt/molscore/bin/pip install -c constraints.txt -r runtime.txt

# What both images share: `ps`, which Nextflow needs, a user, the entry point.
FROM ${BASE} AS image
RUN apt-get update \
 && apt-get install -y --no-install-recommends procps \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log \
 && useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent molscore
COPY docker/entrypoint.sh /usr/local/bin/molscore-entrypoint
# ONNX Runtime's Linux wheels report to their maker unless told not to.
ENV PATH=/opt/molscore/bin:$PATH LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 ORT_DISABLE_TELEMETRY=1
WORKDIR /data
USER 10001:10001
# `docker stop` interrupts a run, which then ends cleanly and can be resumed.
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/molscore-entrypoint"]
CMD ["--help"]

# An argument ends with its stage; not every builder hands it on to a stage built on that one.
FROM dependencies AS runtime-files
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_CERT
COPY LICENSE README.md ./
COPY models models
COPY molscore molscore
COPY docker/prune.sh docker/prune.sh
RUN /opt/molscore/bin/pip install --no-deps . && docker/prune.sh /opt/molscore

FROM image AS runtime
COPY --from=runtime-files /opt/molscore /opt/molscore

FROM dependencies AS train-files
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_CERT
ARG MOLSCORE_TORCH
COPY scripts/install_torch.py scripts/install_torch.py
RUN /opt/molscore/bin/python scripts/install_torch.py \
 && /opt/molscore/bin/pip install -c constraints.txt -r train.txt
COPY LICENSE README.md ./
COPY models models
COPY molscore molscore
RUN /opt/molscore/bin/pip install --no-deps . && /opt/molscore/bin/pip uninstall -y pip

FROM image AS train
COPY --from=train-files /opt/molscore /opt/molscore

FROM runtime
