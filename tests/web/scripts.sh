#!/usr/bin/env bash
# The scripts of the npm packages: their tests in Node, their types, and in a headless Chromium calls, errors, ONNX Runtime Web, pages that are
# killed while they load, two tabs, a network that breaks off, a full disk. Nothing of Weft's own is built for it.
#
#   bash tests/web/scripts.sh
#   CHROMIUM=/path bash tests/web/scripts.sh
#
# It needs Node, Chromium (137 or newer) and npm's playwright-core. What is not there is named and left out, and the exit code is then 3.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/target/web-tools

left_out() {
  echo "left out: $1" >&2
  exit 3
}
command -v node >/dev/null || left_out "there is no Node"
node --test tests/web/*.test.mjs
node tests/web/report.mjs --check

chromium=${CHROMIUM:-$(command -v chromium || command -v google-chrome || true)}
[ -n "$chromium" ] || left_out "there is no Chromium: install it, or set CHROMIUM"
if [ ! -d "$out/node_modules/playwright-core" ] || [ ! -d "$out/node_modules/typescript" ]; then
  mkdir -p "$out"
  npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$out" playwright-core@1 typescript@5 || left_out "npm gives no playwright-core"
fi
export WEFT_PLAYWRIGHT=$out/node_modules/playwright-core/index.js
"$out/node_modules/.bin/tsc" --noEmit --strict --target es2022 --module nodenext --moduleResolution nodenext \
  --lib es2022,dom tests/web/types.ts

engine=$(cargo xtask setup --package onnxruntime-web --json | node -e 'process.stdout.write(JSON.parse(require("fs").readFileSync(0)).packages[0].library)')
node tests/web/scripts.mjs "$(dirname "$engine")" "$chromium"
node tests/web/trouble.mjs "$(dirname "$engine")" "$chromium"
