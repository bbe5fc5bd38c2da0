# One image for all stages; the command chooses the stage. See compose.yaml.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /codea1 .

# The sandbox runs candidates with Python.
FROM python:3.13-slim
COPY --from=build /codea1 /usr/local/bin/codea1
RUN useradd --uid 10001 --create-home codea1 && install -d -o codea1 -g codea1 /runs
USER codea1
WORKDIR /home/codea1
ENV CODEA1_RUNS_DIR=/runs
VOLUME /runs
ENTRYPOINT ["codea1"]
CMD ["--help"]
