// Sentence embeddings by MiniLM in one page after another: this package against transformers.js with its converted model, in turns, in
// one browser, on `wasm` with one thread. What was measured is printed as JSON.
//
//   node peers.mjs PACKAGE CHECKPOINT TRANSFORMERS_JS CONVERTED [ROUNDS] [CHROMIUM]
//
// TRANSFORMERS_JS is the folder of npm's @huggingface/transformers, with onnxruntime-web beside it; CONVERTED holds `onnx/model.onnx`,
// as `weft export --to transformersjs` writes it.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { peak } from './memory.mjs';
import { serve } from './serve.mjs';

const [packed, checkpoint, transformers, converted, rounds = '3', program = '/usr/bin/chromium'] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const modules = join(transformers, '../..');
const mounts = [['/', here], ['/package/', packed], ['/model/', checkpoint], ['/transformers/', join(transformers, 'dist')], ['/modules/', modules], ['/converted/minilm/', converted]];
const { server } = await serve(0, mounts, { maxAge: 3600 });
const base = `http://127.0.0.1:${server.address().port}`;
const TEXTS = ['A warp thread.', 'A weft thread.', 'The shuttle carries the weft through the shed.', 'Rust is a language.', 'Bread.', 'A river at night.'];

const sides = {
  weft: async ([base, texts, calls]) => {
    const start = performance.now();
    const { pipeline } = await import(`${base}/package/index.js`);
    const embed = await pipeline('sentence-embedding', `${base}/model`, { device: 'wasm' });
    const loaded = performance.now();
    const vectors = await embed(texts);
    const first = performance.now();
    const times = [];
    for (let call = 0; call < calls; call++) {
      const begun = performance.now();
      await embed(texts);
      times.push(performance.now() - begun);
    }
    return { load: loaded - start, result: first - start, call: times.sort((a, b) => a - b)[calls >> 1], vectors };
  },
  transformers: async ([base, texts, calls]) => {
    const start = performance.now();
    const { pipeline, env } = await import(`${base}/transformers/transformers.min.js`);
    env.allowLocalModels = false;
    env.remoteHost = `${base}/`;
    env.remotePathTemplate = 'converted/{model}/';
    env.backends.onnx.wasm.wasmPaths = `${base}/modules/onnxruntime-web/dist/`;
    env.backends.onnx.wasm.numThreads = 1;
    env.backends.onnx.wasm.proxy = false;
    const embed = await pipeline('feature-extraction', 'minilm', { device: 'wasm', dtype: 'fp32' });
    const loaded = performance.now();
    const output = await embed(texts, { pooling: 'mean', normalize: false });
    const first = performance.now();
    const times = [];
    for (let call = 0; call < calls; call++) {
      const begun = performance.now();
      await embed(texts, { pooling: 'mean', normalize: false });
      times.push(performance.now() - begun);
    }
    return { load: loaded - start, result: first - start, call: times.sort((a, b) => a - b)[calls >> 1], vectors: output.tolist() };
  },
};

const measured = { weft: [], transformers: [] };
const vectors = {};
const page = await browser(program);
try {
  for (let round = 0; round <= Number(rounds); round++) {
    for (const [name, side] of Object.entries(sides)) {
      // Each begins in a page of its own, whose process ends with it.
      await page.goto('about:blank');
      await page.goto(`${base.replace('127.0.0.1', name === 'weft' ? '127.0.0.1' : 'localhost')}/page.html`);
      const own = base.replace('127.0.0.1', name === 'weft' ? '127.0.0.1' : 'localhost');
      const watch = peak('--type=renderer');
      const { vectors: given, ...times } = await page.evaluate(side, [own, TEXTS, 11]);
      const entry = { ...times, peak_mb: watch.stop() / 1e6 };
      vectors[name] = given;
      // The first round fills the caches.
      console.error(name, round === 0 ? 'cold' : 'warm', JSON.stringify(entry));
      if (round > 0) measured[name].push(entry);
    }
  }
} finally {
  await page.close();
  server.close();
}
const middle = (name, what) => measured[name].map((entry) => entry[what]).sort((a, b) => a - b)[measured[name].length >> 1];
const ratio = Object.fromEntries(['load', 'result', 'call', 'peak_mb'].map((what) => [what, middle('weft', what) / middle('transformers', what)]));
const off = Math.max(...vectors.weft.flatMap((row, i) => row.map((x, j) => Math.abs(x - vectors.transformers[i][j]))));
console.log(JSON.stringify({ browser: page.name, ratio, off, measured }, null, 1));
