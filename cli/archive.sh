#!/usr/bin/env bash
# Builds `weft` for release and packs it: target/archives/weft-VERSION-TARGET.tar.gz and its SHA-256.
#
#   cli/archive.sh [TARGET]     (the host's target where none is named; another one needs its standard library and linker)
#
# WEFT_FEATURES are cargo's features for the build, `weft-models/text-encoders,hub` say; all models where it is not set.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
features=()
[ -z "${WEFT_FEATURES:-}" ] || features=(--no-default-features --features "$WEFT_FEATURES")
built=${CARGO_TARGET_DIR:-target}/release
other=()
[ "$target" = "$host" ] || { other=(--target "$target"); built=${CARGO_TARGET_DIR:-target}/$target/release; }
cargo build --locked --release --package weft-cli ${other[@]+"${other[@]}"} ${features[@]+"${features[@]}"}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=weft-$version-$target
case $target in *windows*) program=weft.exe ;; *) program=weft ;; esac
built=$built/$program
out=target/archives
folder=$out/$name
rm -rf "$folder" && mkdir -p "$folder/completions"
cp "$built" README.md LICENSE-MIT LICENSE-APACHE "$folder/"
# What another platform's program would print, this one's cannot be asked for.
if [ "$target" = "$host" ]; then
  for shell in bash zsh fish powershell elvish; do "$built" completions "$shell" >"$folder/completions/weft.$shell"; done
  "$built" man "$folder/man" >/dev/null
fi
tar -C "$out" -czf "$out/$name.tar.gz" "$name"
rm -rf "$folder"
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
(cd "$out" && "${sum[@]}" "$name.tar.gz" >"$name.tar.gz.sha256" && cat "$name.tar.gz.sha256")
