// What `auto` takes: `node --test tests/web/devices.test.mjs`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { graphics, lacks, places } from '../../web/npm/devices.js';

const adapter = (info, features = []) => ({
  info,
  features: new Set(features),
  limits: { maxBufferSize: 4.3e9, maxStorageBufferBindingSize: 2.1e9, maxComputeInvocationsPerWorkgroup: 1024 },
});
const offering = async (found) => {
  Object.defineProperty(globalThis, 'navigator', { value: { gpu: { requestAdapter: async () => found } }, configurable: true });
  return graphics();
};

test('a graphics processor comes before the processor, and a software device does not', async () => {
  const real = await offering(adapter({ vendor: 'nvidia', architecture: 'ada' }, ['shader-f16']));
  assert.deepEqual([real.name, real.software, real.f16], ['nvidia ada', false, true]);
  const [first, second] = places('auto', real, true);
  assert.equal(first.hardware, 'webgpu');
  assert.equal(first.why, 'webgpu, on nvidia ada: buffers of 4.3 GB, 2.1 GB of them bound at once, 16-bit numbers');
  assert.deepEqual([second.hardware, second.why], ['cpu', 'wasm, since it cannot be loaded on webgpu']);
  for (const info of [{ vendor: 'google', architecture: 'swiftshader' }, { vendor: 'a', isFallbackAdapter: true }, { description: 'llvmpipe (LLVM 19)' }]) {
    const found = await offering(adapter(info));
    assert.deepEqual(places('auto', found, true).map(({ hardware }) => hardware), ['cpu']);
  }
});

test('without a graphics processor or promises there is the processor alone', async () => {
  const none = await offering(null);
  assert.equal(none, undefined);
  assert.match(places('auto', none, true)[0].why, /offers no graphics processor/);
  const real = await offering(adapter({ vendor: 'apple' }));
  assert.match(places('auto', real, false)[0].why, /no JavaScript Promise Integration/);
});

test('a device that is named is the only one', () => {
  assert.deepEqual(places('webnn-npu', undefined, true), [{ hardware: 'webnn', webnn: 'npu' }]);
  assert.deepEqual(places('webgpu', undefined, true), [{ hardware: 'webgpu' }]);
});

test('16-bit numbers are asked of a graphics processor that has them', async () => {
  const [full, half] = [{ weights: undefined, modules: {} }, { weights: 'f16', modules: {} }];
  const without = await offering(adapter({ vendor: 'intel' }));
  assert.equal(lacks(without, full), undefined);
  assert.match(lacks(without, half), /\(intel\) has no 16-bit numbers/);
  assert.match(lacks(without, { weights: 'int4', modules: { vision: 'f16' } }), /shader-f16/);
  assert.equal(lacks(await offering(adapter({ vendor: 'nvidia' }, ['shader-f16'])), half), undefined);
  assert.equal(lacks(undefined, half), undefined);
  const [place, ...others] = places('auto', without, true, lacks(without, half));
  assert.deepEqual([place.hardware, others.length], ['cpu', 0]);
  assert.match(place.why, /^wasm, since the graphics processor .* has no 16-bit numbers/);
});
