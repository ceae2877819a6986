// Runs in a tab: opens models, runs one at a time, and counts what reaches the browser's devices.
'use strict';

// Counted before ONNX Runtime is loaded, so that a run that never reached a device cannot pass.
const counts = { build: 0, dispatch: 0, workgroups: 0 };

function count(type, method, key) {
  const prototype = globalThis[type]?.prototype;
  const original = prototype?.[method];
  if (!original) return;
  prototype[method] = function (...operands) {
    counts[key] += 1;
    return original.apply(this, operands);
  };
}

count('MLGraphBuilder', 'build', 'build');
count('MLContext', 'dispatch', 'dispatch');
count('GPUComputePassEncoder', 'dispatchWorkgroups', 'workgroups');
count('GPUComputePassEncoder', 'dispatchWorkgroupsIndirect', 'workgroups');

// The lines of ONNX Runtime's log that tell where nodes were placed and what it complains about.
const TELLING = /Operator type: |GetCapability|placed on \[|^ *\S+ \(.*\)$|VerifyEachNodeIsAssigned|\[[EF]:/;
let lines = [];
for (const level of ['debug', 'log', 'info', 'warn', 'error']) {
  console[level] = (...parts) => {
    const line = parts.join(' ').replace(/\x1b\[[0-9;]*m/g, '');
    if (TELLING.test(line)) lines.push(line);
  };
}

const TYPES = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };

let loading;
let kept;
const sessions = new Map();

function load() {
  loading ??= import(new URL('ort/ort.webgpu.bundle.min.mjs', location).href).then((ort) => {
    ort.env.wasm.numThreads = 1;
    const wasm = new URL('ort/ort-wasm-simd-threaded.asyncify.wasm', location).href;
    ort.env.wasm.wasmPaths = { wasm };
    return ort;
  });
  return loading;
}

// ONNX Runtime drops the device, and every shader compiled for it, with the last session: one stays.
function keep(ort, provider) {
  if (provider !== 'webgpu') return undefined;
  kept ??= ort.InferenceSession.create(new URL('kept.onnx', location).href, { executionProviders: [provider] });
  return kept;
}

async function device(ort, provider) {
  if (provider !== 'webgpu') return provider.deviceType;
  const { vendor, architecture, description } = (await ort.env.webgpu.device)?.adapterInfo ?? {};
  return [vendor, architecture || description].filter(Boolean).join(' ');
}

// Each answers {error} instead of throwing, so that the log comes with it.
globalThis.weft = {
  async open({ number, provider, model, externalData, extra }) {
    lines = [];
    const before = { ...counts };
    try {
      const ort = await load();
      await keep(ort, provider);
      const options = { executionProviders: [provider], externalData, extra, logSeverityLevel: 0 };
      const session = await ort.InferenceSession.create(model, options);
      sessions.set(number, session);
      return { log: lines, counts: since(before), device: await device(ort, provider) };
    } catch (error) {
      return { error: String(error?.message ?? error), log: lines };
    }
  },

  async run({ number, inputs, from, to }) {
    lines = [];
    const before = { ...counts };
    try {
      const ort = await load();
      const bytes = await (await fetch(from)).arrayBuffer();
      const feeds = {};
      for (const { name, type, dims, offset, length } of inputs) {
        feeds[name] = new ort.Tensor(type, new TYPES[type](bytes.slice(offset, offset + length)), dims);
      }
      const results = await sessions.get(number).run(feeds, { logSeverityLevel: 2 });
      const outputs = [];
      const parts = [];
      for (const [name, tensor] of Object.entries(results)) {
        const data = await tensor.getData();
        outputs.push({ name, type: tensor.type, dims: tensor.dims, length: data.byteLength });
        parts.push(data);
        tensor.dispose();
      }
      const sent = await fetch(to, { method: 'POST', body: new Blob(parts) });
      if (!sent.ok) throw new Error(`the outputs were not accepted: ${sent.status}`);
      return { outputs, counts: since(before) };
    } catch (error) {
      return { error: String(error?.message ?? error), log: lines };
    }
  },

  async release(number) {
    const session = sessions.get(number);
    sessions.delete(number);
    await session?.release();
    return {};
  },
};

function since(before) {
  return Object.fromEntries(Object.entries(counts).map(([key, value]) => [key, value - before[key]]));
}
