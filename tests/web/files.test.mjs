// What the worker fetches of a checkpoint's files, and what it keeps: `node --test tests/web/files.test.mjs`.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { inMemory, widened } from '../../web/npm/blobs.js';
import { Files, touching } from '../../web/npm/files.js';

const URL = 'https://host/model.safetensors';
const BYTES = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251);

let asked;
let kept;
let full;
let broken;
let etag;
let modified;
let bytes;

beforeEach(() => {
  etag = '"1"';
  modified = undefined;
  bytes = BYTES;
  asked = [];
  kept = new Map();
  full = false;
  broken = undefined;
  globalThis.fetch = async (url, { method, headers }) => {
    if (!url.endsWith('.safetensors')) return new Response('', { status: 404 });
    const version = etag ? { ETag: etag } : modified ? { 'Last-Modified': modified } : {};
    if (method === 'HEAD') return new Response('', { headers: { ...version, 'Content-Length': `${bytes.length}` } });
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.Range).map(Number);
    asked.push([start, Math.min(end + 1, bytes.length)]);
    if (broken?.(start)) throw new TypeError('Failed to fetch');
    const range = { 'Content-Range': `bytes ${start}-${end}/${bytes.length}` };
    return new Response(bytes.slice(start, end + 1), { status: 206, headers: { ...range, ...version } });
  };
  globalThis.caches = {
    open: async () => ({
      match: async (place) => kept.get(place)?.clone(),
      put: async (place, response) => {
        if (full) throw new DOMException('no room', 'QuotaExceededError');
        kept.set(place, response);
      },
      keys: async () => [...kept.keys()].map((url) => ({ url })),
      delete: async ({ url }) => kept.delete(url),
    }),
  };
});

const files = (progress = () => {}) => new Files({ cache: true, headers: {}, progress });

test('ranges that touch are fetched together, and none twice', () => {
  const chunks = touching([[100, 10], [0, 50], [50, 50], [0, 50], [200, 5]]);
  const found = (chunks) => chunks.map(({ offset, length, uses }) => [offset, length, uses]);
  assert.deepEqual(found(chunks), [[0, 110, 160], [200, 5, 5]]);
  // That which is read first comes first.
  assert.deepEqual(found(touching([[200, 5], [0, 50]])), [[200, 5, 5], [0, 50, 50]]);
  const large = 12 << 20;
  assert.equal(touching([[0, large], [large, large]]).length, 2);
});

test('only what is used is fetched, and only once', async () => {
  const events = [];
  const first = files((event) => events.push(event));
  assert.equal(await first.size(URL), BYTES.length);
  const blob = await first.blob(URL, [[60_000, 40_000], [100_000, 1_000], [250_000, 500]]);
  assert.equal(blob.size, BYTES.length);
  const read = new Uint8Array(await blob.slice(60_000, 100_000).slice(10, 39_000).arrayBuffer());
  assert.deepEqual(read, BYTES.slice(60_010, 99_000));
  const chunks = [];
  for await (const chunk of blob.slice(250_000, 250_500).stream()) chunks.push(chunk);
  assert.deepEqual(chunks, [BYTES.slice(250_000, 250_500)]);
  assert.deepEqual(asked, [[0, 65_536], [65_536, 101_000], [250_000, 250_500]]);
  const last = events.filter((event) => event.status === 'progress').at(-1);
  assert.deepEqual([last.loaded, last.total], [41_500, 41_500]);

  const again = files();
  await (await again.blob(URL, [[60_000, 41_000]])).slice(60_000, 101_000).arrayBuffer();
  assert.equal(asked.length, 3);
  assert.equal(again.counts().fetched, 0);
});

test('what is read piece by piece of a part is fetched and kept as a whole', async () => {
  const ranges = [[60_000, 40_000], [100_000, 1_000], [101_000, 99_000], [250_000, 500]];
  const read = async (loading) => {
    loading.plan(URL, ranges);
    assert.deepEqual(await loading.read(URL, 100_000, 1_000), BYTES.slice(100_000, 101_000));
    assert.deepEqual(await loading.read(URL, 60_000, 40_000), BYTES.slice(60_000, 100_000));
    // The same ranges, and one of them alone.
    loading.plan(URL, ranges.slice(1, 2));
    const blob = await loading.blob(URL, ranges.slice(2));
    assert.deepEqual(new Uint8Array(await blob.slice(101_000, 200_000).arrayBuffer()), BYTES.slice(101_000, 200_000));
    assert.deepEqual(new Uint8Array(await blob.slice(250_000, 250_500).arrayBuffer()), BYTES.slice(250_000, 250_500));
  };
  const events = [];
  await read(files((event) => events.push(event)));
  assert.deepEqual(asked, [[0, 65_536], [65_536, 200_000], [250_000, 250_500]]);
  const seen = events.map(({ status, loaded, total }) => [status, loaded, total]);
  assert.deepEqual([seen[0], seen.at(-1)], [['download', 0, 140_500], ['progress', 140_500, 140_500]]);
  asked.length = 0;
  await read(files());
  assert.deepEqual(asked, []);
  // Where nothing is kept, what is read is all that is fetched.
  const loading = new Files({ cache: false, headers: {}, progress: () => {} });
  loading.plan(URL, ranges);
  await loading.read(URL, 100_000, 1_000);
  const blob = await loading.blob(URL, ranges.slice(2));
  assert.deepEqual(new Uint8Array(await blob.slice(101_000, 200_000).arrayBuffer()), BYTES.slice(101_000, 200_000));
  assert.deepEqual(asked, [[0, 65_536], [100_000, 101_000], [101_000, 200_000], [250_000, 250_500]]);
});

test('no more is fetched ahead than there is room for', async () => {
  const length = 100 << 20;
  const sizes = [];
  globalThis.fetch = async (url, { headers }) => {
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.Range).map(Number);
    sizes.push(end + 1 - start);
    const body = { getReader: () => ({ read: async () => ({ done: true }) }) };
    const named = { 'Content-Range': `bytes ${start}-${end}/${6 * length}`, ETag: etag };
    return { ok: true, status: 206, headers: new Headers(named), body, arrayBuffer: async () => new ArrayBuffer(end + 1 - start) };
  };
  const huge = URL.replace('model', 'huge');
  const ranges = Array.from({ length: 6 }, (_, index) => [index * length, length]);
  await new Files({ cache: false, headers: {}, progress: () => {} }).blob(huge, ranges);
  await new Promise((done) => setTimeout(done, 10));
  assert.equal(sizes.length, 1 + 2);
});

test('bytes in memory and bfloat16 are read slice by slice', async () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Uint8Array(memory.buffer).set([0, 0x80, 0x3f, 0xc0, 0xbf], 8);
  const stored = inMemory(memory, 9, 4);
  memory.grow(1);
  assert.deepEqual(new Uint8Array(await stored.arrayBuffer()), Uint8Array.of(0x80, 0x3f, 0xc0, 0xbf));
  const wide = widened(stored);
  assert.equal(wide.size, 8);
  assert.deepEqual(new Float32Array(await wide.arrayBuffer()), Float32Array.of(1, -1.5));
  assert.deepEqual(new Float32Array(await wide.slice(4, 8).arrayBuffer()), Float32Array.of(-1.5));
});

test('a load that broke off goes on where it was', async () => {
  broken = (start) => start === 250_000;
  const ranges = [[70_000, 1_000], [250_000, 500]];
  const blob = await files().blob(URL, ranges);
  await blob.slice(70_000, 71_000).arrayBuffer();
  await assert.rejects(blob.slice(250_000, 250_500).arrayBuffer(), /cannot be fetched: Failed to fetch; see that the network/);
  broken = undefined;
  asked.length = 0;
  const whole = await files().blob(URL, ranges);
  await whole.slice(70_000, 71_000).arrayBuffer();
  await whole.slice(250_000, 250_500).arrayBuffer();
  assert.deepEqual(asked, [[250_000, 250_500]]);
});

test('a full disk ends keeping and not loading', async () => {
  full = true;
  const events = [];
  const read = await files((event) => events.push(event)).read(URL, 200_000, 3);
  assert.deepEqual(read, BYTES.slice(200_000, 200_003));
  assert.match(events[0].message, /not kept: no room/);
});

test('another version of a file is fetched again, and the old one is not kept', async () => {
  const changed = BYTES.map((byte) => byte ^ 1);
  for (const [before, today, length] of [['"1"', '"2"', 300_000], [undefined, undefined, 299_999]]) {
    kept.clear();
    [etag, bytes] = [before, BYTES];
    assert.deepEqual(await files().read(URL, 200_000, 3), BYTES.slice(200_000, 200_003));
    [etag, bytes] = [today, changed.slice(0, length)];
    assert.deepEqual(await files().read(URL, 200_000, 3), changed.slice(200_000, 200_003));
    assert.equal(kept.size, 2);
    // The same version comes out of the cache, also where the server cannot be asked.
    asked.length = 0;
    const server = globalThis.fetch;
    globalThis.fetch = async () => {
      throw new TypeError('Failed to fetch');
    };
    assert.deepEqual(await files().read(URL, 200_000, 3), changed.slice(200_000, 200_003));
    globalThis.fetch = server;
    assert.deepEqual(asked, []);
  }
});

test('a server without ETag tells versions apart by the time of the last change', async () => {
  etag = undefined;
  const [before, after] = ['Mon, 02 Nov 2026 10:00:00 GMT', 'Tue, 03 Nov 2026 10:00:00 GMT'];
  const changed = BYTES.map((byte) => byte ^ 1);
  for (const [time, now] of [[before, BYTES], [after, changed]]) {
    [modified, bytes] = [time, now];
    assert.deepEqual(await files().read(URL, 200_000, 3), now.slice(200_000, 200_003));
    asked.length = 0;
    assert.deepEqual(await files().read(URL, 200_000, 3), now.slice(200_000, 200_003));
    assert.deepEqual(asked, []);
  }
});

test('what is not there or failed is asked for again at the next load', async () => {
  const first = files();
  assert.equal(await first.size('https://host/modules.json'), -1);
  assert.equal(kept.size, 0);
  globalThis.fetch = async () => new Response('{}');
  assert.equal(await first.size('https://host/modules.json'), -1);
  assert.equal(await files().size('https://host/modules.json'), 2);
  globalThis.fetch = async () => new Response('', { status: 503 });
  const failing = files();
  await assert.rejects(failing.size('https://host/config.json'), /answered by 503/);
  globalThis.fetch = async () => new Response('{}');
  assert.equal(await failing.size('https://host/config.json'), 2);
});
