// Where models run: what a page may name, what `auto` takes, and what the graphics processor offers.

/** The runtime's backend, and the kind of device that WebNN is asked for. */
const NAMED = {
  wasm: { hardware: 'cpu' },
  cpu: { hardware: 'cpu' },
  webgpu: { hardware: 'webgpu' },
  webnn: { hardware: 'webnn', webnn: 'cpu' },
  'webnn-cpu': { hardware: 'webnn', webnn: 'cpu' },
  'webnn-gpu': { hardware: 'webnn', webnn: 'gpu' },
  'webnn-npu': { hardware: 'webnn', webnn: 'npu' },
};

/** The names of all devices. */
export const DEVICES = ['auto', ...Object.keys(NAMED)];

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|software|basic render/i;

/** What the browser's graphics processor is and allows; nothing where it offers none. */
export async function graphics() {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter({ powerPreference: 'high-performance' }).catch(() => undefined);
  if (!adapter) return undefined;
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info ?? {};
  const name = [vendor, architecture, description || device].filter(Boolean).join(' ');
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeInvocationsPerWorkgroup } = adapter.limits;
  const software = Boolean(isFallbackAdapter ?? adapter.isFallbackAdapter) || SOFTWARE.test(name);
  return { name, software, f16: adapter.features.has('shader-f16'), maxBufferSize, maxStorageBufferBindingSize, maxComputeInvocationsPerWorkgroup };
}

function described({ name, f16, maxBufferSize, maxStorageBufferBindingSize }) {
  const size = (bytes) => `${(bytes / 1e9).toFixed(1)} GB`;
  return `${name || 'a graphics processor without a name'}: buffers of ${size(maxBufferSize)}, ${size(maxStorageBufferBindingSize)} of them bound at once, ${f16 ? '' : 'no '}16-bit numbers`;
}

/** Why a graphics processor cannot compute in such precisions; nothing where it can, or nothing is known of it. */
export function lacks(found, { weights, modules }) {
  const wanted = [weights, ...Object.values(modules)].includes('f16');
  if (!wanted || !found || found.f16) return undefined;
  return `the graphics processor that this browser offers (${found.name || 'without a name'}) has no 16-bit numbers (\`shader-f16\`), in which dtype \`fp16\` computes`;
}

/**
 * The places where a pipeline is loaded, the first that works; each says why it is taken where it was not named. `promises`: whether the browser has
 * JavaScript Promise Integration; `lacking`: what the graphics processor lacks for the precisions.
 */
export function places(device, found, promises, lacking) {
  if (device !== 'auto') return [{ ...NAMED[device] }];
  const wasm = (why) => ({ ...NAMED.wasm, why: `wasm, since ${why}` });
  if (!promises) return [wasm('this browser has no JavaScript Promise Integration, without which there is no WebGPU')];
  if (!found) return [wasm('this browser offers no graphics processor')];
  if (found.software) return [wasm('the graphics processor that this browser offers is a software device')];
  if (lacking) return [wasm(lacking)];
  return [{ ...NAMED.webgpu, why: `webgpu, on ${described(found)}` }, wasm('it cannot be loaded on webgpu')];
}
