#!/usr/bin/env bash
# Runs the packed tests on CPU, CUDA and WebGPU and collects the records:
#
#   run.sh RESULTS_FOLDER
#
# CUDA 13 and cuDNN 9 must be on LD_LIBRARY_PATH (they are looked for among Python's nvidia packages, too), and a
# Vulkan loader and driver for WebGPU. What is missing is recorded as untested, with its reason.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
results=${1:?usage: run.sh RESULTS_FOLDER}
mkdir -p "$results"

site=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
if [ -n "$site" ]; then
  LD_LIBRARY_PATH=$(find "$site" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:):${LD_LIBRARY_PATH:-}
fi
export LD_LIBRARY_PATH=$here/lib:${LD_LIBRARY_PATH:-}
export WEFT_CACHE=$here/cache WEFT_GOLDENS=$here/goldens
WEFT_RUN=$(date -u +%Y-%m-%dT%H-%M-%SZ)-linux-x86_64-gpu
export WEFT_RUN WEFT_RESULTS=$results/$WEFT_RUN.jsonl
failed=0
for binary in "$here"/tests/*; do
  chmod +x "$binary"
  # A process holds one ONNX Runtime, and each backend has its own build of it.
  for backend in cpu cuda webgpu; do
    echo "== $(basename "$binary") $backend"
    timeout 300 "$binary" "$backend::" || failed=1
  done
done
exit $failed
