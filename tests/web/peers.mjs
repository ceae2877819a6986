// This package against transformers.js with its converted model: one page after another, in turns, in one browser, on `wasm` with one
// thread. What was measured is printed as JSON.
//
//   node peers.mjs PACKAGE CHECKPOINT TRANSFORMERS_JS CONVERTED [ROUNDS] [CHROMIUM] [--dtype=q4] [--generate] [--record]
//
// TRANSFORMERS_JS is the folder of npm's @huggingface/transformers, with onnxruntime-web beside it; CONVERTED holds `onnx/model.onnx`,
// as `weft export --to transformersjs` writes it. Sentence embeddings of six sentences are measured (MiniLM's), or with `--generate` a text's
// first token and the time of further ones.

import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { peak } from './memory.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const dtype = process.argv.find((one) => one.startsWith('--dtype='))?.slice('--dtype='.length) ?? 'fp32';
const generating = process.argv.includes('--generate');
const [packed, checkpoint, transformers, converted, rounds = '3', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const here = dirname(fileURLToPath(import.meta.url));
const modules = join(transformers, '../..');
const mounts = [['/', here], ['/package/', packed], ['/model/', checkpoint], ['/transformers/', join(transformers, 'dist')], ['/modules/', modules], ['/converted/model/', converted]];
const { server } = await serve(0, mounts, { maxAge: 3600 });
const base = `http://127.0.0.1:${server.address().port}`;
const task = generating ? 'text-generation' : 'sentence-embedding';
/** Vectors: the largest difference of their components. Texts: the share after the first letter that differs; of random weights many a token is as good. */
const differ = (ours, theirs) => {
  if (!generating) return Math.max(...ours.flatMap((row, i) => row.map((x, j) => Math.abs(x - theirs[i][j]))));
  const same = [...ours].findIndex((letter, index) => letter !== theirs[index]);
  return same < 0 ? 0 : 1 - same / ours.length;
};

const entries = { weft: [], transformers: [] };
const answers = {};
const page = await browser(program);
try {
  for (let round = 0; round <= Number(rounds); round++) {
    for (const name of Object.keys(entries)) {
      // Each begins in a page of its own, whose process ends with it.
      await page.goto('about:blank');
      await page.goto(`${base.replace('127.0.0.1', name === 'weft' ? '127.0.0.1' : 'localhost')}/page.html`);
      const own = base.replace('127.0.0.1', name === 'weft' ? '127.0.0.1' : 'localhost');
      const watch = peak('--type=renderer');
      const { answer, ...times } = await page.evaluate(
        async ([name, base, task, dtype]) => (await import(`${base}/peers.js`)).measured(name, base, task, dtype),
        [name, own, task, dtype],
      );
      const entry = { ...times, peak_mb: watch.stop() / 1e6 };
      answers[name] = answer;
      // The first round fills the caches.
      console.error(name, round === 0 ? 'cold' : 'warm', JSON.stringify(entry));
      if (round > 0) entries[name].push(entry);
    }
  }
} finally {
  await page.close();
  server.close();
}
const middle = (name, what) => entries[name].map((entry) => entry[what]).sort((a, b) => a - b)[entries[name].length >> 1];
const whats = ['load', 'result', 'call', 'peak_mb'];
const medians = Object.fromEntries(Object.keys(entries).map((name) => [name, Object.fromEntries(whats.map((what) => [what, middle(name, what)]))]));
// Of each round, since what else the machine does differs between rounds.
const ratios = (what) => entries.weft.map((entry, round) => entry[what] / entries.transformers[round][what]).sort((a, b) => a - b);
const ratio = Object.fromEntries(whats.map((what) => [what, ratios(what)[entries.weft.length >> 1]]));
const range = Object.fromEntries(whats.map((what) => [what, [ratios(what)[0], ratios(what).at(-1)]]));
const off = differ(answers.weft, answers.transformers);
const { version } = JSON.parse(await readFile(join(transformers, 'package.json'), 'utf8'));
const what = generating ? 'a token after the first' : 'a call of six sentences';
const model = basename(checkpoint);
const found = { browser: page.name, peer: `transformers.js ${version}`, model, dtype, what, rounds: Number(rounds), ratio, range, medians, off };
console.log(JSON.stringify(found, null, 1));
if (process.argv.includes('--record')) await keep('peers', ['browser', 'peer', 'model', 'dtype'], [found]);
// Both compute the same, or the times say nothing.
process.exit(generating || off <= 1e-4 ? 0 : 1);
