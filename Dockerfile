# Carrel in a container: one static binary, git and a shell for what runs in workspaces, no root.
#
#   docker build -t carrel .
#   docker run -p 8080:8080 -v carrel:/data -e CARREL_TOKEN_SECRET carrel serve --bind 0.0.0.0:8080 --data /data
#
# Add the toolchains that your tasks need in an image of your own: FROM carrel.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    make build && cp target/release/carrel /carrel

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates curl git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home carrel \
    && install -d -o carrel -g carrel -m 0700 /data /workspaces
COPY --from=build /carrel /usr/local/bin/carrel
USER carrel
VOLUME ["/data", "/workspaces"]
EXPOSE 8080 8081
ENTRYPOINT ["carrel"]
CMD ["serve", "--bind", "0.0.0.0:8080", "--data", "/data"]
