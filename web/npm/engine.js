// ONNX Runtime Web: opens models with proof of where their nodes went, and runs them.

import { inMemory, widened } from './blobs.js';
import { Caches, sizeOf, TYPES } from './caches.js';

const PROVIDERS = { cpu: 'wasm', webgpu: 'webgpu', webnn: 'webnn' };

/** What the names of a cache's outputs begin with. */
const CACHED = 'present.';

// An ONNX model: the graph `c` with the node `y = Identity(x)` of a number each.
const COPY = (() => {
  const part = (field, bytes) => [field * 8 + 2, bytes.length, ...bytes];
  const text = (letters) => [...new TextEncoder().encode(letters)];
  const value = (name) => [...part(1, text(name)), ...part(2, part(1, [8, 1, ...part(2, part(1, [8, 1]))]))];
  const node = part(1, [...part(1, text('x')), ...part(2, text('y')), ...part(4, text('Identity'))]);
  const graph = [...node, ...part(2, text('c')), ...part(11, value('x')), ...part(12, value('y'))];
  return new Uint8Array([8, 10, ...part(7, graph), ...part(8, [16, 21])]);
})();

// The lines of its log that tell where nodes were placed and what it complains about.
const TELLING = /Operator type: |GetCapability|placed on \[|^ *\S+ \(.*\)$|VerifyEachNodeIsAssigned|\[[EF]:/;
let lines;
for (const level of ['debug', 'log', 'info', 'warn', 'error']) {
  const original = console[level];
  console[level] = (...parts) => {
    // A session that was opened with all details tells of each kernel that it runs.
    if (!lines) return /\[[VI]:onnxruntime/.test(parts[0]) ? undefined : original.apply(console, parts);
    const line = parts.join(' ').replace(/\x1b\[[0-9;]*m/g, '');
    if (TELLING.test(line)) lines.push(line);
  };
}

export class Engine {
  #options;
  #loading;
  #first;
  #sessions = new Map();
  #held = new Map();
  // Caches on the graphics processor, once a model is there.
  #caches;
  // Why the graphics processor is gone, once it is: nothing computes there any more.
  #lost;
  #next = 1;

  constructor(options) {
    this.#options = options;
  }

  /** Begins to compile ONNX Runtime Web, which it does with the first model that it is given: one that copies a number. */
  ahead() {
    this.#first ??= this.#load().then(async (ort) => {
      const session = await ort.InferenceSession.create(COPY, { executionProviders: ['wasm'] });
      await session.release();
    });
    // What is wrong with it the checkpoint's model meets as well.
    this.#first.catch(() => {});
  }

  /** What runs a backend here; an error that says what this browser lacks. */
  async version(hardware) {
    if (!(hardware in PROVIDERS)) throw new Error('a page has no such backend: it has wasm, webgpu and webnn');
    if (!this.#options.jspi && hardware !== 'cpu') {
      throw new Error('this browser has no JavaScript Promise Integration, without which there is wasm alone: Chrome and Edge have it from 137 on');
    }
    if (hardware === 'webgpu') {
      const adapter = await navigator.gpu?.requestAdapter();
      if (!navigator.gpu) throw new Error('this browser has no WebGPU here');
      if (!adapter) throw new Error('this browser has WebGPU, but offers no graphics processor to it');
    } else if (hardware === 'webnn' && !navigator.ml) {
      throw new Error('this browser has no WebNN here');
    }
    const ort = await this.#load();
    const name = { cpu: 'WebAssembly', webgpu: 'WebGPU', webnn: 'WebNN' }[hardware];
    return `ONNX Runtime Web ${ort.env.versions.web} (${name})`;
  }

  /** Opens a model: the answer is JSON. What is in memory is an array of bytes each, or lies in a WebAssembly's memory. */
  async open({ hardware, files, memory: places, exclusive, cached = [] }, model, memory) {
    const ort = await this.#load();
    // Only ONNX Runtime Web's build for JavaScript Promise Integration reads slices, one tensor after another.
    const { jspi } = this.#options;
    const externalData = places.map(({ path, at, length }, index) => ({ path, data: jspi ? inMemory(memory, at, length) : memory[index] }));
    for (const { path, url, ranges, wide } of files) {
      const stored = await this.#options.files.blob(url, ranges);
      if (!wide) {
        externalData.push({ path, data: jspi ? stored : await whole(stored, ranges) });
        continue;
      }
      // Each a file of its own: ONNX Runtime Web knows no place behind 4 GB.
      for (const [index, [offset, length]] of ranges.entries()) {
        const data = widened(stored.slice(offset, offset + length));
        externalData.push({ path: `${path}/${index}`, data: jspi ? data : new Uint8Array(await data.arrayBuffer()) });
      }
    }
    await this.#first?.catch(() => {});
    const provider = PROVIDERS[hardware];
    const elsewhere = provider !== 'wasm';
    const options = {
      executionProviders: [provider === 'webnn' ? { name: provider, deviceType: this.#options.webnn } : provider],
      externalData,
      // What is placed where is only said in the most detailed log.
      logSeverityLevel: elsewhere ? 0 : 2,
      extra: elsewhere && exclusive ? { session: { disable_cpu_ep_fallback: '1' } } : {},
    };
    // What the next run goes on from stays on the graphics processor.
    if (provider === 'webgpu' && cached.length > 0) {
      options.preferredOutputLocation = Object.fromEntries(cached.map((name) => [name, 'gpu-buffer']));
    }
    lines = elsewhere ? [] : undefined;
    try {
      const session = await ort.InferenceSession.create(model, options);
      const number = this.#next++;
      this.#sessions.set(number, session);
      if (provider === 'webgpu') await this.#watch(ort);
      // Those of before were smaller.
      this.#caches?.clear();
      return JSON.stringify({ number, log: lines ?? [], device: await this.#device(ort, provider) });
    } catch (error) {
      return JSON.stringify({ error: String(error?.message ?? error), log: lines ?? [] });
    } finally {
      lines = undefined;
    }
  }

  /**
   * Runs a model: the outputs' description as JSON, and their bytes. Tensors of a cache are held where they are when `keep` says so, and
   * go into the next run by their numbers.
   */
  async run(number, { inputs, keep }, bytes) {
    const ort = await this.#load();
    const feeds = {};
    for (const { name, held, type, dims, offset, length } of inputs) {
      feeds[name] = held ? this.#held.get(held) : new ort.Tensor(type, new TYPES[type](bytes.slice(offset, offset + length).buffer), dims);
    }
    if (this.#lost) throw new Error(this.#lost);
    const session = this.#sessions.get(number);
    const caches = keep ? this.#caches?.outputs(session, CACHED) : undefined;
    let results;
    try {
      const options = { logSeverityLevel: 2 };
      results = await (caches ? session.run(feeds, caches, options) : session.run(feeds, options));
    } catch (error) {
      for (const tensor of Object.values(caches ?? {})) if (tensor) this.#caches.release(tensor);
      throw this.#lost ? new Error(this.#lost) : error;
    }
    const read = [];
    const outputs = [];
    for (const [name, tensor] of Object.entries(results)) {
      if (keep && name.startsWith(CACHED)) {
        const held = this.#next++;
        this.#held.set(held, tensor);
        outputs.push({ name, held, bytes: sizeOf(tensor.type, tensor.dims) });
      } else {
        read.push([name, tensor]);
      }
    }
    const [described, all] = await bytesOf(read);
    for (const [, tensor] of read) tensor.dispose();
    return [JSON.stringify([...outputs, ...described]), all];
  }

  /** A tensor that is held: its description as JSON, and its bytes. */
  async readTensor(number) {
    const held = this.#held.get(number);
    // ONNX Runtime Web would take the tensor off the graphics processor.
    const data = await this.#caches?.read(held);
    const tensor = data ? { type: held.type, dims: held.dims, getData: () => data } : held;
    const [described, all] = await bytesOf([['held', tensor]]);
    return [JSON.stringify(described), all];
  }

  /**
   * Takes the last positions along an axis off a tensor that is held, and of these keeps the last ones, or has zeros before them:
   * `length` of them, or all that are left; its bytes then, and none where that is not possible where it lies.
   */
  resizeTensor(number, axis, dropped, length) {
    const tensor = this.#held.get(number);
    const resized = this.#caches?.resized(tensor, axis, dropped, length);
    if (!resized) return undefined;
    this.releaseTensor(number);
    this.#held.set(number, resized);
    return sizeOf(resized.type, resized.dims);
  }

  releaseTensor(number) {
    const tensor = this.#held.get(number);
    this.#held.delete(number);
    if (tensor && !this.#caches?.release(tensor)) tensor.dispose();
  }

  async release(number) {
    const session = this.#sessions.get(number);
    this.#sessions.delete(number);
    await session?.release();
  }

  #load() {
    const { ort: folder, threads, jspi } = this.#options;
    const base = folder || new URL('./ort/', import.meta.url).href;
    const script = `${base}ort.${jspi ? 'jspi' : 'wasm'}.bundle.min.mjs`;
    this.#loading ??= import(/* webpackIgnore: true */ /* @vite-ignore */ script).then(
      (ort) => {
        ort.env.wasm.wasmPaths = { wasm: `${base}ort-wasm-simd-threaded${jspi ? '.jspi' : ''}.wasm` };
        const most = Math.min(4, navigator.hardwareConcurrency ?? 1);
        ort.env.wasm.numThreads = globalThis.crossOriginIsolated ? threads || most : 1;
        return ort;
      },
      // Not every browser says which script it was.
      (error) => {
        const help = 'serve the folder `ort` of the package there, or name another folder by the option `ort`';
        throw new Error(`${script} cannot be imported (${error.message}): ${help}`);
      },
    );
    return this.#loading;
  }

  /** Whether what it computes on is gone. */
  get lost() {
    return this.#lost !== undefined;
  }

  /** Hears of the loss of the graphics processor: its driver ended, or it went to sleep. */
  async #watch(ort) {
    const device = await ort.env.webgpu.device;
    if (device) this.#caches ??= new Caches(ort, device);
    void device?.lost.then(({ message }) => (this.#lost = `the graphics processor was lost (${message || 'the browser does not say why'})`));
  }

  async #device(ort, provider) {
    if (provider !== 'webgpu') return provider === 'webnn' ? this.#options.webnn : '';
    const { vendor, architecture, description } = (await ort.env.webgpu.device)?.adapterInfo ?? {};
    return [vendor, architecture || description].filter(Boolean).join(' ');
  }
}

/** A file with the ranges that are read in their places, and zeros elsewhere. */
async function whole(blob, ranges) {
  const bytes = new Uint8Array(blob.size);
  for (const [offset, length] of ranges) {
    bytes.set(new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()), offset);
  }
  return bytes;
}

/** Tensors, each with its name, as descriptions and their bytes one after the other. */
async function bytesOf(tensors) {
  const described = [];
  const parts = [];
  for (const [name, tensor] of tensors) {
    const data = await tensor.getData();
    described.push({ name, type: tensor.type, dims: tensor.dims, length: data.byteLength });
    parts.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return [described, all];
}
