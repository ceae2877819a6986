// The scripts of the npm packages in a headless Chromium, without WebAssembly of Weft's own: calls, abort signals, errors, and ONNX
// Runtime Web, whose weights are ranges of a file.
//
//   node scripts.mjs ONNXRUNTIME_WEB_DIST [CHROMIUM]

import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addition, cached } from './graph.mjs';
import { serve } from './serve.mjs';

const { chromium } = (await import(process.env.WEFT_PLAYWRIGHT ?? 'playwright-core')).default;
const [dist, program = '/usr/bin/chromium'] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'weft-scripts-'));
const OFFSET = 100_000;

await cp(join(here, '../../web/npm'), join(folder, 'package'), { recursive: true });
await cp(join(here, 'stub'), join(folder, 'package/wasm'), { recursive: true });
await mkdir(join(folder, 'model'));
await writeFile(join(folder, 'model/config.json'), '{}');
const weights = Buffer.alloc(2 * OFFSET);
[10, 20, 30, 40].forEach((value, index) => weights.writeFloatLE(value, OFFSET + 4 * index));
await writeFile(join(folder, 'model/model.safetensors'), weights);

const mounts = [['/', here], ['/ort/', dist], ['/package/', join(folder, 'package')], ['/model/', join(folder, 'model')]];
const { server, asked } = await serve(0, mounts);
const base = `http://127.0.0.1:${server.address().port}`;
const gpu = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
const browser = await chromium.launch({ executablePath: program, chromiumSandbox: false, args: gpu });
try {
  const page = await browser.newPage();
  await page.goto(`${base}/page.html`);

  const seen = await page.evaluate(async (base) => {
    const { pipeline } = await import(`${base}/package/index.js`);
    const words = (promise) => promise.then((value) => value, (error) => `${error.name}: ${error.message}`);
    const load = (task, model, options) => pipeline(task, `${base}/${model}`, options);
    const events = [];
    const call = await load('any', 'model/', { dtype: 'q4', progress: ({ status }) => events.push(status) });
    const { device, about } = call;
    const answer = await call('a text', { top_k: 2 });
    const texts = [];
    const stop = new AbortController();
    const onText = (text) => {
      texts.push(text);
      if (texts.length === 3) stop.abort();
    };
    const aborted = await words(call('a text', { signal: stop.signal, onText }));
    const queued = (await Promise.all([call(1), call(2), call(3)])).map(([input]) => input);
    await call.dispose();
    const ending = new AbortController();
    const endless = words(load('endless', 'model', { signal: ending.signal }));
    setTimeout(() => ending.abort(), 300);
    return {
      events, device, answer, aborted, texts, queued,
      precision: about.explanation,
      disposed: await words(call('a text')),
      missing: await words(load('any', 'none')),
      trap: await words(load('trap', 'model')),
      endless: await endless,
      cuda: await words(load('any', 'model', { device: 'cuda' })),
      auto: (await load('any', 'model', { device: 'auto', dtype: 'q4' })).about,
      dtype: await words(load('any', 'model', { dtype: 'q5' })),
      nothing: await words(pipeline('any', '')),
    };
  }, base);
  assert.deepEqual([seen.device, seen.precision, seen.events], ['wasm', 'int4', ['ready']]);
  assert.deepEqual(seen.answer, ['a text', { top_k: 2 }]);
  assert.match(seen.aborted, /^AbortError/);
  assert.deepEqual(seen.texts, ['0 ', '1 ', '2 ']);
  assert.deepEqual(seen.queued, [1, 2, 3]);
  assert.equal(seen.disposed, 'WeftError: the pipeline was disposed of: load it again');
  assert.equal(seen.missing, `WeftError: ${base}/none: no config.json`);
  assert.equal(seen.trap, 'WeftError: the runtime ended: index out of bounds; please report this');
  assert.match(seen.endless, /^AbortError/);
  assert.match(seen.cuda, /device is `cuda`; give one of auto, wasm, cpu, webgpu, webnn/);
  assert.deepEqual([seen.auto.device, seen.auto.graphics.software], ['cpu', true]);
  assert.match(seen.auto.explanation, /^wasm, since the graphics processor that this browser offers is a software device; /);
  assert.match(seen.dtype, /dtype is `q5`; give one of auto, fp32/);
  assert.match(seen.nothing, /the model is missing/);
  console.log('calls, abort signals and errors');

  asked.length = 0;
  await page.evaluate(async () => {
    for (const name of await caches.keys()) await caches.delete(name);
  });
  for (const hardware of ['cpu', 'webgpu']) {
    const ran = await page.evaluate(async ([base, model, hardware, offset]) => {
      const { Engine } = await import(`${base}/package/engine.js`);
      const { Files } = await import(`${base}/package/files.js`);
      const files = new Files({ cache: true, headers: {}, progress() {} });
      const engine = new Engine({ files, threads: 0, ort: `${base}/ort/`, jspi: true });
      const version = await engine.version(hardware);
      const file = { path: 'model.safetensors', url: `${base}/model/model.safetensors`, ranges: [[offset, 16]] };
      const argument = { hardware, files: [file], memory: [], exclusive: true };
      const opened = JSON.parse(await engine.open(argument, new Uint8Array(model), []));
      if (opened.error) throw new Error(opened.error);
      const input = { name: 'x', type: 'float32', dims: [4], offset: 0, length: 16 };
      const x = new Uint8Array(new Float32Array([1, 2, 3, 4]).buffer);
      const [outputs, bytes] = await engine.run(opened.number, { inputs: [input], keep: false }, x);
      const y = [...new Float32Array(bytes.buffer)];
      const refused = await engine.version('cuda').catch((error) => error.message);
      await engine.release(opened.number);
      return { version, log: opened.log, outputs: JSON.parse(outputs), y, refused, bytes: files.counts() };
    }, [base, addition(OFFSET), hardware, OFFSET]);
    assert.deepEqual(ran.y, [11, 22, 33, 44]);
    assert.deepEqual(ran.outputs, [{ name: 'y', type: 'float32', dims: [4], length: 16 }]);
    assert.match(ran.refused, /no such backend/);
    // The second engine finds in the browser's cache what the first one fetched.
    assert.deepEqual([ran.bytes.fetched > 0, ran.bytes.cached > 0], [hardware === 'cpu', true]);
    if (hardware === 'webgpu') assert(ran.log.some((line) => line.includes('All nodes placed on [WebGpuExecutionProvider]')));
    console.log(ran.version);
  }

  const kept = await page.evaluate(async ([base, model]) => {
    const { Engine } = await import(`${base}/package/engine.js`);
    const engine = new Engine({ files: {}, threads: 0, ort: `${base}/ort/`, jspi: true });
    await engine.version('webgpu');
    const { number, error } = JSON.parse(await engine.open({ hardware: 'webgpu', files: [], memory: [], exclusive: true, cached: ['present.0.key'] }, new Uint8Array(model), []));
    if (error) throw new Error(error);
    const described = { type: 'float32', dims: [1, 2, 4, 3], offset: 0, length: 96 };
    const x = new Uint8Array(Float32Array.from({ length: 24 }, (_, index) => index).buffer);
    const step = async (past) => JSON.parse((await engine.run(number, { inputs: [{ name: 'x', ...described }, { name: 'past_key_values.0.key', ...past }], keep: true }, x))[0])[0];
    const read = async (held) => [...new Float32Array((await engine.readTensor(held))[1].buffer)];
    const { createBuffer } = GPUDevice.prototype;
    let [first, last] = [await step(described)];
    const made = [];
    for (let token = 0; token < 6; token++) {
      let buffers = 0;
      GPUDevice.prototype.createBuffer = function (of) {
        // Those of what a run is given and of what is read are not a cache's.
        if (of.size === 96 && of.usage === (GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST)) buffers += 1;
        return createBuffer.call(this, of);
      };
      last = await step({ held: first.held });
      engine.releaseTensor(first.held);
      first = last;
      made.push(buffers);
    }
    GPUDevice.prototype.createBuffer = createBuffer;
    const whole = await read(last.held);
    const longer = [engine.resizeTensor(last.held, 2, 0, 6), await read(last.held)];
    const shorter = [engine.resizeTensor(last.held, 2, 3, undefined), await read(last.held)];
    const absent = engine.resizeTensor(last.held, 2, 3, 0);
    return { bytes: last.bytes, made, whole, longer, shorter, absent };
  }, [base, cached()]);
  assert.deepEqual(kept.whole, Array.from({ length: 24 }, (_, index) => 8 * index));
  // A run writes into the buffer of the run before the last one.
  assert.deepEqual([kept.bytes, kept.made.slice(2)], [96, [0, 0, 0, 0]]);
  const padded = [0, 12].flatMap((first) => [...Array(6).fill(0), ...kept.whole.slice(first, first + 12)]);
  assert.deepEqual(kept.longer, [144, padded]);
  assert.deepEqual(kept.shorter, [72, [0, 18].flatMap((first) => padded.slice(first, first + 9))]);
  assert.equal(kept.absent, undefined);
  console.log('caches of fixed capacity');
  const ranges = asked.filter(({ path }) => path.endsWith('.safetensors')).map(({ start, end }) => [start, end]);
  assert.deepEqual(ranges, [[0, 65_536], [OFFSET, OFFSET + 16]]);
} finally {
  await browser.close();
  server.close();
  await rm(folder, { recursive: true, force: true });
}
