// Sentence embeddings by all-MiniLM-L6-v2 in a page of a headless browser, against those of the native engine.
//
//   node minilm.mjs PACKAGE CHECKPOINT EXPECTED.json [wasm|webgpu|webnn] [BROWSER] [--waiting] [--record]
//
// EXPECTED.json is `cargo xtask demo --json`; BROWSER the path of Chromium, Firefox or WebKitWebDriver. With `--waiting` the page has
// no JavaScript Promise Integration, and is isolated. What was measured is printed as JSON; with `--record`
// it goes to results/pages.json.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const waiting = process.argv.includes('--waiting');
const [packed, checkpoint, expectedFile, device = 'wasm', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const { sentences, embeddings } = JSON.parse(await readFile(expectedFile, 'utf8'));
const tolerance = device === 'webgpu' ? 1e-3 : 1e-5;

const here = dirname(fileURLToPath(import.meta.url));
const { server, asked } = await serve(0, [['/', here], ['/package/', packed], ['/model/', checkpoint]], { isolated: waiting });
const base = `http://127.0.0.1:${server.address().port}`;
let failed = 0;
const page = await browser(program);
try {
  await page.goto(`${base}/page.html`);
  if (waiting) await page.evaluate(async () => delete WebAssembly.Suspending);
  const load = (options) => page.evaluate(
    async ([base, device, sentences, options]) => {
      const { pipeline } = await import(`${base}/package/index.js`);
      const events = [];
      const start = performance.now();
      const embed = await pipeline('sentence-embedding', `${base}/model/`, { device, progress: (e) => events.push(e), ...options });
      const loaded = performance.now();
      const vectors = await embed(sentences);
      const first = performance.now();
      const again = await embed(sentences);
      const second = performance.now();
      const { about } = embed;
      await embed.dispose();
      const last = events.filter((event) => event.status === 'progress').at(-1);
      const warnings = events.filter((event) => event.status === 'warning').map(({ message }) => message);
      return { vectors, again, about, events: events.length, warnings, last, load_ms: loaded - start, first_ms: first - loaded, second_ms: second - first };
    },
    [base, device, sentences, options],
  );
  const weights = () => asked.filter(({ path, missing }) => path.endsWith('.safetensors') && !missing);
  const cold = await load({});
  const difference = (a, b) => Math.max(...a.flatMap((row, i) => row.map((x, j) => Math.abs(x - b[i][j]))));
  const check = (what, holds, seen) => {
    if (!holds) failed += 1;
    console.error(`${holds ? 'ok  ' : 'FAIL'} ${what}: ${seen}`);
  };
  const off = difference(cold.vectors, embeddings);
  check(`vectors within ${tolerance} of the native ones`, off <= tolerance, off);
  check('a second call gives the same', difference(cold.again, cold.vectors) <= tolerance, difference(cold.again, cold.vectors));
  const fetched = weights().reduce((sum, { start, end }) => sum + end - start, 0);
  check('progress ends at all bytes', cold.last.loaded === cold.last.total, `${cold.last.loaded} of ${cold.last.total}`);
  asked.length = 0;
  const warm = await load({});
  if (warm.warnings.length > 0) console.error(`     ${warm.warnings[0]}`);
  check('nothing is fetched twice', page.ephemeral || warm.about.bytes.fetched === 0, `${warm.about.bytes.fetched} bytes`);
  check('from the cache the same', difference(warm.vectors, cold.vectors) === 0, difference(warm.vectors, cold.vectors));
  const refused = await page.evaluate(async (base) => {
    const { pipeline } = await import(`${base}/package/index.js`);
    const words = async (...args) => pipeline(...args).then(() => 'it loaded', (error) => `${error.name}: ${error.message}`);
    const controller = new AbortController();
    const stopped = words('sentence-embedding', `${base}/model/`, { signal: controller.signal, cache: false });
    controller.abort();
    return {
      missing: await words('sentence-embedding', `${base}/none/`),
      task: await words('text-embeddings', `${base}/model/`),
      ort: await words('sentence-embedding', `${base}/model/`, { ort: `${base}/none/` }),
      device: await words('sentence-embedding', `${base}/model/`, { device: 'cuda' }),
      aborted: await stopped,
    };
  }, base);
  check('a folder without a model is named', /config\.json/.test(refused.missing), refused.missing);
  check('a task that is none is named', /text-embeddings/.test(refused.task), refused.task);
  check('a folder without ONNX Runtime Web is named', /none\/ort\..*mjs|import/.test(refused.ort), refused.ort);
  check('a device that is none is named', /webgpu/.test(refused.device), refused.device);
  check('loading is aborted', /AbortError/.test(refused.aborted), refused.aborted);
  const { vectors, again, ...measured } = cold;
  const times = ({ load_ms, first_ms, second_ms, about }) => ({ load_ms, first_ms, second_ms, about });
  const found = { browser: page.name, device, waiting, off, weights_fetched: fetched, cold: measured, warm: times(warm) };
  console.log(JSON.stringify(found, null, 1));
  const { load_ms, first_ms, second_ms } = measured;
  const warm_ms = page.ephemeral ? null : warm.load_ms;
  const first_result_ms = page.ephemeral ? null : warm.load_ms + warm.first_ms;
  const entry = { browser: page.name, device, waiting, off, weights_fetched: fetched, load_ms, warm_ms, first_result_ms, first_ms, second_ms };
  if (process.argv.includes('--record') && failed === 0) await keep('minilm', ['browser', 'device', 'waiting'], [entry]);
} finally {
  await page.close();
  server.close();
}
process.exit(failed === 0 ? 0 : 1);
