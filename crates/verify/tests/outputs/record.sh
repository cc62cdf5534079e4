#!/bin/bash
# Records what real tools say, for the parsers' tests.
#
#   record.sh NAME/CASE DIRECTORY ARGV...
#
# Runs ARGV in DIRECTORY (a project below /w) and keeps stdout, stderr, the exit status and every
# file that the tool writes to $ARTIFACTS (`{artifacts}` in ARGV stands for it).
set -u
here=$(cd "$(dirname "$0")" && pwd)
out="$here/$1"; directory=$2; shift 2
rm -rf "$out" /tmp/carrel-artifacts; mkdir -p "$out" /tmp/carrel-artifacts
argv=("${@//\{artifacts\}//tmp/carrel-artifacts}")
(cd "$directory" && CI=1 NO_COLOR=1 timeout 300 "${argv[@]}") >"$out/stdout" 2>"$out/stderr" </dev/null
echo "$?" >"$out/exit"
cp -r /tmp/carrel-artifacts/. "$out/" 2>/dev/null
printf '%s\n' "$*" >"$out/argv"
# What is special about the machine is no part of a tool's output.
find "$out" -type f -exec sed -i -E \
  -e 's#/tmp/carrel-artifacts#/artifacts#g; s#/tmp/rec/target#/w/rust/target#g; s#/root/\.pyenv/versions/[0-9.]+#/usr#g' \
  -e 's#/root/\.rustup/toolchains/[^/ ]+/bin#/usr/bin#g; s#/root/\.npm#/home/user/.npm#g; s#hostname="[^"]*"#hostname="host"#g' \
  -e '/^npm warn Unknown user config/d' {} +
find "$out" -type f -empty ! -name exit -delete
echo "${out#"$here"/}: exit $(cat "$out/exit"): $(ls "$out" | tr '\n' ' ')"
