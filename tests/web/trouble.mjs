// What goes wrong in pages, in a headless Chromium: a page that is killed while it loads, a network that breaks off, two tabs at once, a
// full disk, and a graphics processor that is lost. Files are kept in the origin's private file system, as in a pipeline's worker.
//
//   node trouble.mjs ONNXRUNTIME_WEB_DIST [CHROMIUM]

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { addition } from './graph.mjs';
import { serve } from './serve.mjs';

const [dist, program = '/usr/bin/chromium'] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'weft-trouble-'));
const MB = 1 << 20;
const SIZE = 48 * MB;
const RANGES = [[MB, 15 * MB], [17 * MB, 15 * MB], [33 * MB, 15 * MB - 7]];
const USED = RANGES.reduce((sum, [, length]) => sum + length, 0);
await mkdir(join(folder, 'model'));
const weights = Buffer.alloc(SIZE);
for (let index = 0; index < SIZE; index += 4) weights.writeUInt32LE((index * 2654435761) >>> 0, index);
weights.writeFloatLE(10, 100_000);
const expected = () => {
  let sum = 0;
  for (const [offset, length] of RANGES) for (let at = offset; at < offset + length; at++) sum = (sum * 31 + weights[at]) % 1_000_003;
  return sum;
};
for (const name of ['a', 'b', 'c', 'd', 'gpu']) {
  await mkdir(join(folder, 'model', name));
  await writeFile(join(folder, 'model', name, 'model.safetensors'), weights);
}

// Which ranges are let wait, or broken off in their midst.
let slow;
let cut;
const before = async (request, response) => {
  const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (slow?.(start)) await slow(start);
  if (!cut?.(start)) return false;
  response.writeHead(206, { 'Content-Range': `bytes ${start}-${start + 1000}/${SIZE}`, 'Content-Length': 1001, 'Last-Modified': 'Mon, 02 Nov 2026 10:00:00 GMT' });
  response.write(Buffer.alloc(10));
  setTimeout(() => response.destroy(), 50);
  return true;
};
const mounts = [['/', here], ['/npm/', join(here, '../../web/npm')], ['/ort/', dist], ['/model/', join(folder, 'model')]];
const { server, asked } = await serve(0, mounts, { before });
const base = `http://127.0.0.1:${server.address().port}`;
const bytes = (name) => asked.filter(({ path, missing }) => path.includes(`/${name}/`) && !missing).reduce((sum, { start, end }) => sum + end - start, 0);
const started = await browser(program);
const read = (page, name) =>
  page.evaluate(
    ([base, name, ranges]) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(`${base}/files_worker.js`, { type: 'module' });
        worker.onerror = (event) => reject(new Error(event.message));
        worker.onmessage = ({ data }) => resolve(data);
        worker.postMessage({ files: `${base}/npm/files.js`, url: `${base}/model/${name}/model.safetensors`, ranges });
      }),
    [base, name, RANGES],
  );
/** How many bytes of files are kept. */
const kept = (page) =>
  page.evaluate(async () => {
    const sizes = [];
    const walk = async (folder) => {
      for await (const entry of folder.values()) {
        if (entry.kind === 'directory') await walk(entry);
        else sizes.push(await entry.getFile().then(({ size }) => size, () => 0));
      }
    };
    await walk(await navigator.storage.getDirectory());
    return sizes.reduce((sum, size) => sum + size, 0);
  });
try {
  const sum = expected();
  const { page } = started;
  await page.goto(`${base}/page.html`);

  // The last range does not come; the page is left meanwhile.
  let reached;
  const waiting = new Promise((resolve) => (reached = resolve));
  slow = (start) => start >= 33 * MB && new Promise((resolve) => (reached(), setTimeout(resolve, 30_000)));
  const left = read(page, 'a').catch(() => 'gone');
  await waiting;
  while ((await kept(page)) < 30 * MB) await page.waitForTimeout(200);
  await page.goto('about:blank');
  assert.equal(await left, 'gone');
  slow = undefined;
  await page.goto(`${base}/page.html`);
  asked.length = 0;
  const resumed = await read(page, 'a');
  assert.equal(resumed.sum, sum);
  assert(resumed.counts.fetched < 20 * MB && resumed.counts.cached > 25 * MB, JSON.stringify(resumed.counts));
  console.log(`a page that was killed goes on: ${resumed.counts.fetched} of ${USED} bytes fetched again`);

  cut = (start) => start >= 33 * MB;
  const broken = await read(page, 'b');
  assert.match(broken.error, /broke off|cannot be fetched|network/);
  cut = undefined;
  const whole = await read(page, 'b');
  assert.equal(whole.sum, sum);
  assert(whole.counts.fetched < 16 * MB, JSON.stringify(whole.counts));
  console.log(`a network that broke off: "${broken.error.slice(0, 60)} …", then ${whole.counts.fetched} bytes fetched`);

  asked.length = 0;
  const other = await started.context.newPage();
  await other.goto(`${base}/page.html`);
  const both = await Promise.all([read(page, 'c'), read(other, 'c')]);
  assert.deepEqual(both.map((one) => one.sum), [sum, sum]);
  const over = bytes('c') - USED;
  assert(over < MB, `${over} bytes were fetched twice`);
  await other.close();
  console.log(`two tabs at once: ${bytes('c')} bytes asked for, ${USED} used`);

  const clear = async (base) => (await import(`${base}/npm/store.js`)).clearStore();
  assert((await kept(page)) > USED);
  await page.evaluate(clear, base);
  assert.equal(await kept(page), 0);
  console.log('what is kept is removed');

  const devtools = await started.context.newCDPSession(page);
  await devtools.send('Storage.overrideQuotaForOrigin', { origin: base, quotaSize: 2 * MB });
  const full = await read(page, 'd');
  assert.equal(full.sum, sum);
  assert.match(full.warnings[0] ?? '', /is not kept/);
  await devtools.send('Storage.overrideQuotaForOrigin', { origin: base });
  console.log(`a full disk: "${full.warnings[0].slice(0, 80)}"`);

  const lost = await page.evaluate(async ([base, model]) => {
    const { Engine } = await import(`${base}/npm/engine.js`);
    const { Files } = await import(`${base}/npm/files.js`);
    const engine = new Engine({ files: new Files({ cache: false, headers: {}, progress() {} }), threads: 0, ort: `${base}/ort/`, jspi: true });
    const file = { path: 'model.safetensors', url: `${base}/model/gpu/model.safetensors`, ranges: [[100_000, 16]] };
    const opened = JSON.parse(await engine.open({ hardware: 'webgpu', files: [file], memory: [], exclusive: true }, new Uint8Array(model), []));
    if (opened.error) throw new Error(opened.error);
    const inputs = [{ name: 'x', type: 'float32', dims: [4], offset: 0, length: 16 }];
    const run = () => engine.run(opened.number, { inputs, keep: false }, new Uint8Array(16)).then(() => 'it ran', (error) => error.message);
    const ran = await run();
    const ort = await import(`${base}/ort/ort.jspi.bundle.min.mjs`);
    (await ort.env.webgpu.device).destroy();
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { ran, after: await run(), lost: engine.lost };
  }, [base, addition(100_000)]);
  assert.equal(lost.ran, 'it ran');
  assert.match(lost.after, /the graphics processor was lost/);
  assert.equal(lost.lost, true);
  console.log(`a lost device: "${lost.after}"`);
} finally {
  await started.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
}
