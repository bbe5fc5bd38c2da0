# One image for all stages; the command chooses the stage. The target torch has the
# torch engine as well, and the target judge bandit. See compose.yaml.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /codea1 .

# The sandbox runs candidates with Python.
FROM python:3.13-slim AS stage
COPY --from=build /codea1 /usr/local/bin/codea1
RUN useradd --uid 10001 --create-home codea1 && install -d -o codea1 -g codea1 /runs
USER codea1
WORKDIR /home/codea1
ENV CODEA1_RUNS_DIR=/runs
VOLUME /runs
ENTRYPOINT ["codea1"]
CMD ["--help"]

# The torch engine has a Python of its own. Triton compiles its kernels with gcc when
# they are first used.
FROM stage AS torch
USER root
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY gpuworker/torch/python /src/codea1_torch
RUN python -m venv /opt/torch && /opt/torch/bin/pip install --no-cache-dir \
    torch==2.11.0 transformers==5.17.0 safetensors==0.8.0 msgpack==1.2.4 /src/codea1_torch
RUN install -d -o codea1 -g codea1 /home/codea1/.cache /home/codea1/.cache/huggingface
USER codea1
ENV CODEA1_TORCH_PYTHON=/opt/torch/bin/python

# The judge stage scans answers with bandit.
FROM stage AS judge
USER root
RUN pip install --no-cache-dir bandit==1.9.4
USER codea1

# The default target.
FROM stage
