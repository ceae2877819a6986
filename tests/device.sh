#!/usr/bin/env bash
# From a bare Linux machine to records of what its device does:
#
#   tests/device.sh [--commit] HW... [-- OPTIONS OF cargo xtask test]
#   tests/device.sh --commit cuda webgpu
#   tests/device.sh cpu -- --model bert          # a rehearsal, anywhere
#
# Fetches what is missing: a linker, Python and Vulkan's loader (Debian, Ubuntu; as root), Rust by rustup, for CUDA the
# libraries that ONNX Runtime loads (from PyPI, into target/device), the backends' pinned packages. A failed case is a result
# and kept; --commit takes the records into results/, draws the report again and commits both.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=
[ "${1:-}" = --commit ] && { commit=1; shift; }
backends=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do backends+=("$1"); shift; done
[ "${1:-}" = -- ] && shift
[ ${#backends[@]} -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
has() { [[ " ${backends[*]} " == *" $1 "* ]]; }

missing=()
command -v cc >/dev/null || missing+=(build-essential)
command -v curl >/dev/null || missing+=(curl ca-certificates)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv python3-pip)
has webgpu && { ldconfig -p | grep -q libvulkan.so.1 || missing+=(libvulkan1); command -v npm >/dev/null || missing+=(npm); }
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"
  else
    echo "error: this machine lacks ${missing[*]}" >&2
    echo "  help: install them, or run this as root on Debian or Ubuntu" >&2
    exit 2
  fi
fi
if ! command -v cargo >/dev/null; then
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
  PATH=$HOME/.cargo/bin:$PATH
fi

if has cuda; then
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv || echo "no NVIDIA driver: cuda will be recorded as untested" >&2
  venv=target/device/cuda
  if [ ! -e "$venv/.complete" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet nvidia-cuda-runtime nvidia-cublas nvidia-cufft nvidia-curand nvidia-cuda-nvrtc nvidia-cudnn-cu13
    touch "$venv/.complete"
  fi
  LD_LIBRARY_PATH=$(find "$PWD/$venv" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi

options=()
for backend in "${backends[@]}"; do options+=(--hw "$backend"); done
cargo xtask setup "${options[@]}" || echo "what could not be had is recorded as untested" >&2
cargo xtask doctor || true
status=0
if [ -n "$commit" ]; then
  cargo xtask test "${options[@]}" --results results "$@" || status=$?
  cargo xtask report --docs
  git add results docs
  git diff --cached --quiet || git commit -m "Record ${backends[*]} on $(uname -m)"
else
  cargo xtask test "${options[@]}" "$@" || status=$?
fi
exit "$status"
