#!/usr/bin/env bash
# Packs the generated tests, built, with the runtime libraries and the goldens that they need, for a machine that
# has an NVIDIA GPU and no network:
#
#   tests/gpu/pack.sh [CRATE]…      writes target/weft-gpu.tar.gz; all generated crates where none is named
#
# There: tar xzf weft-gpu.tar.gz && weft-gpu/run.sh RESULTS_FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

crates=("$@")
if [ ${#crates[@]} -eq 0 ]; then
  mapfile -t crates < <(sed -n 's/^name = "\(weft-.*\)"/\1/p' generated/*/*/Cargo.toml)
fi
cargo xtask setup --hw cuda --hw webgpu --hw cpu
cache=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}

out=target/weft-gpu
rm -rf "$out" && mkdir -p "$out/tests" "$out/lib" "$out/cache/packages"
for crate in "${crates[@]}"; do
  binary=$(cargo build --quiet --package "$crate" --test hardware --message-format=json |
    python3 -c 'import json, sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1])')
  strip -o "$out/tests/$crate" "$binary"
done
# What all of them are linked to: the runtime, and Rust's own library.
for library in "$(dirname "$binary")/libweft_dylib.so" "$(rustc --print target-libdir)"/libstd-*.so; do
  strip -o "$out/lib/$(basename "$library")" "$library"
done
cp -r tests/goldens tests/known_failures "$out/"
cp tests/gpu/run.sh "$out/run.sh"
for package in onnxruntime onnxruntime-gpu onnxruntime-ep-webgpu; do
  for folder in "$cache/packages/$package"-[0-9]*; do
    to="$out/cache/packages/$(basename "$folder")"
    (cd "$folder" && find . -name '*.so*' ! -name '*pybind11*' ! -name '*tensorrt*' -o -name .complete) |
      while read -r file; do install -D -m 644 "$folder/$file" "$to/$file"; done
  done
done
tar czf target/weft-gpu.tar.gz -C target weft-gpu
ls -l target/weft-gpu.tar.gz
