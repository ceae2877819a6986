// What calls are given beside JSON: `node --test tests/web/inputs.test.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taken } from '../../web/npm/inputs.js';

test('files travel beside JSON, in which names stand for them', async () => {
  const image = new Blob(['GIF89a'], { type: 'image/gif' });
  const { inputs, parameters, files } = await taken({ text: 'of it', images: [image, 'https://host/a.png'] }, { top_k: 2, mask: image });
  assert.deepEqual(inputs, { text: 'of it', images: ['input:0', 'https://host/a.png'] });
  assert.deepEqual(parameters, { top_k: 2, mask: 'input:1' });
  assert.deepEqual(files, { 'input:0': image, 'input:1': image });
});

test('samples are audio among inputs, and numbers among parameters', async () => {
  const samples = Float32Array.of(0, 1);
  const { inputs, parameters, files } = await taken(samples, { speaker_embeddings: samples });
  assert.deepEqual([inputs, parameters], ['input:0', { speaker_embeddings: [0, 1] }]);
  assert.deepEqual(files, { 'input:0': { samples, rate: 16_000 } });
});

test('a video is a file that lists the names of its frames', async () => {
  const frame = new Blob(['RIFF'], { type: 'image/webp' });
  const { inputs, files } = await taken([{ frames: [frame, 'https://host/b.png', frame] }, 'https://host/c.gif'], {});
  const [video, other] = inputs;
  assert.equal(other, 'https://host/c.gif');
  const names = JSON.parse(await files[video].text());
  assert.deepEqual(names.map((name) => files[name] ?? name), [frame, 'https://host/b.png', frame]);
});
