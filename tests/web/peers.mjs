// Sentence embeddings by MiniLM in one page after another: this package against transformers.js with its converted model, in turns, in
// one browser, on `wasm` with one thread. What was measured is printed as JSON.
//
//   node peers.mjs PACKAGE CHECKPOINT TRANSFORMERS_JS CONVERTED [ROUNDS] [CHROMIUM] [--record]
//
// TRANSFORMERS_JS is the folder of npm's @huggingface/transformers, with onnxruntime-web beside it; CONVERTED holds `onnx/model.onnx`,
// as `weft export --to transformersjs` writes it.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { peak } from './memory.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const [packed, checkpoint, transformers, converted, rounds = '3', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => one !== '--record');
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
    const output = await embed(texts, { pooling: 'mean', normalize: true });
    const first = performance.now();
    const times = [];
    for (let call = 0; call < calls; call++) {
      const begun = performance.now();
      await embed(texts, { pooling: 'mean', normalize: true });
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
const whats = ['load', 'result', 'call', 'peak_mb'];
const medians = Object.fromEntries(Object.keys(sides).map((name) => [name, Object.fromEntries(whats.map((what) => [what, middle(name, what)]))]));
// Of each round, since what else the machine does differs between rounds.
const ratios = (what) => measured.weft.map((entry, round) => entry[what] / measured.transformers[round][what]).sort((a, b) => a - b);
const ratio = Object.fromEntries(whats.map((what) => [what, ratios(what)[measured.weft.length >> 1]]));
const range = Object.fromEntries(whats.map((what) => [what, [ratios(what)[0], ratios(what).at(-1)]]));
const off = Math.max(...vectors.weft.flatMap((row, i) => row.map((x, j) => Math.abs(x - vectors.transformers[i][j]))));
const { version } = JSON.parse(await readFile(join(transformers, 'package.json'), 'utf8'));
const found = { browser: page.name, peer: `transformers.js ${version}`, rounds: Number(rounds), ratio, range, medians, off };
console.log(JSON.stringify(found, null, 1));
if (process.argv.includes('--record')) await keep('peers', ['browser', 'peer'], [found]);
// Both compute the same, or the times say nothing.
process.exit(off <= 1e-4 ? 0 : 1);
