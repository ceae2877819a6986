// The page's side of the package: each pipeline has a worker of its own, which is ended with it.

import { DEVICES, graphics, lacks, places } from './devices.js';
import { taken } from './inputs.js';
import { clearStore } from './store.js';
import { sharedState } from './waiting.js';

const DTYPES = {
  auto: undefined, fp32: 'f32', fp16: 'f16', bf16: 'bf16', q8: 'int8', int8: 'int8', q4: 'int4', 'q4-mixed': 'int4-mixed', q3: 'int3', q2: 'int2',
};
const CACHE_DTYPES = { auto: undefined, fp32: 'f32', q8: 'int8', int8: 'int8', q4: 'int4' };

/** An error of a pipeline, with the way out in its message. */
export class WeftError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'WeftError';
  }
}

/** Removes all files of checkpoints that were kept. */
export function clearCache() {
  return clearStore();
}

/** Loads a checkpoint for a task. See index.d.ts. */
export async function pipeline(task, model, options = {}) {
  const { device = 'wasm', signal } = options;
  if (!DEVICES.includes(device)) throw new WeftError(`device is \`${device}\`; give one of ${DEVICES.join(', ')}`);
  const precisions = precisionsOf(options);
  if (typeof model !== 'string' || model === '') {
    throw new WeftError('the model is missing: give an id of the hub, `org/name`, or the URL of a folder');
  }
  signal?.throwIfAborted();
  const waiting = !('Suspending' in WebAssembly);
  if (waiting && !globalThis.crossOriginIsolated) {
    throw new WeftError(
      'this browser has no JavaScript Promise Integration (Chrome and Edge have it from 137 on, Firefox from 153 on), and without it ' +
        'the page must be isolated: serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp',
    );
  }
  const found = ['auto', 'webgpu'].includes(device) ? await graphics() : undefined;
  const lacking = lacks(found, precisions);
  if (lacking && device === 'webgpu') throw new WeftError(`${lacking}; give dtype \`fp32\`, \`q8\` or \`q4\`, or device \`wasm\``);
  const tried = places(device, found, !waiting, lacking);
  if (waiting && tried.some(({ hardware }) => hardware !== 'cpu')) {
    throw new WeftError(`device is \`${device}\`, for which this browser lacks JavaScript Promise Integration; give \`wasm\``);
  }
  const problems = [];
  for (const [index, place] of tried.entries()) {
    try {
      const pipeline = await loaded(task, model, { ...options, precisions, waiting, ...place });
      const why = place.why && `${place.why}${problems.length > 0 ? `: ${problems.join('; ')}` : ''}`;
      pipeline.about.explanation = [why, pipeline.about.explanation].filter(Boolean).join('; ');
      if (found) pipeline.about.graphics = found;
      return pipeline;
    } catch (error) {
      if (signal?.aborted || index === tried.length - 1) throw error;
      problems.push(error.message);
    }
  }
}

/** A pipeline in one place. */
async function loaded(task, model, options) {
  const { hardware, webnn, precisions, waiting, progress, signal } = options;
  const client = new Client(progress);
  const abort = () => client.end(signal.reason ?? new DOMException('aborted', 'AbortError'));
  signal?.addEventListener('abort', abort);
  try {
    const settings = {
      task,
      checkpoint: folder(model, options),
      hardware,
      webnn,
      precisions,
      cache: options.cache ?? true,
      headers: options.headers ?? {},
      page: location.href,
      threads: options.threads ?? 0,
      ort: options.ort === undefined ? '' : new URL(options.ort, location.href).href,
    };
    if (waiting) settings.waiting = await client.wait(settings);
    const { about } = await client.call('load', settings, {}, settings.waiting ? [settings.waiting.port] : []);
    return callable(client, task, about);
  } catch (error) {
    // What a provider left behind would stay in the way of the next one.
    client.end(error);
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** The pipeline as a function, with what it is as properties. */
function callable(client, task, about) {
  const run = async (inputs, options = {}) => {
    const { signal, onText, ...parameters } = options;
    const given = await taken(inputs, parameters);
    return client.call('run', { ...given, streaming: onText !== undefined }, { signal, onText });
  };
  return Object.assign(run, {
    task,
    device: about.device === 'cpu' ? 'wasm' : about.device,
    about,
    async dispose() {
      client.end(new WeftError('the pipeline was disposed of: load it again'));
    },
  });
}

/** What weights, those of modules by their names, and cached keys and values are in. */
function precisionsOf({ dtype = 'auto', kv_cache_dtype = 'auto' }) {
  const { '*': all = 'auto', ...modules } = dtype !== null && typeof dtype === 'object' ? dtype : { '*': dtype };
  const named = Object.entries(modules).map(([module, value]) => [module, chosen(`dtype of \`${module}\``, value, DTYPES)]);
  return {
    weights: chosen('dtype', all, DTYPES),
    modules: Object.fromEntries(named),
    kv_cache: chosen('kv_cache_dtype', kv_cache_dtype, CACHE_DTYPES),
  };
}

function chosen(option, value, known) {
  if (!Object.hasOwn(known, value)) {
    throw new WeftError(`${option} is \`${value}\`; give one of ${Object.keys(known).join(', ')}`);
  }
  return known[value];
}

/** The URL of a checkpoint's folder, without a slash at its end. */
function folder(model, { host = 'https://huggingface.co', revision = 'main' }) {
  const isId = /^[\w.-]+\/[\w.-]+$/.test(model) && !model.startsWith('.');
  const url = isId ? `${host}/${model}/resolve/${encodeURIComponent(revision)}` : new URL(model, location.href).href;
  return url.replace(/\/+$/, '');
}

/** Calls of a worker: one runs, the others wait for it. */
class Client {
  #workers = [];
  #calls = new Map();
  #next = 0;
  #ended;
  #progress;
  // Which call a worker that waits was told to end.
  #stopped;

  constructor(progress) {
    this.#progress = progress;
    this.#start(new Worker(new URL('./worker.js', import.meta.url), { type: 'module' }), ({ data }) => {
      if (data.event === 'progress') return void progress?.(data.progress);
      const call = this.#calls.get(data.id);
      if (data.event === 'text') return void call?.onText?.(data.text);
      this.#calls.delete(data.id);
      if (data.error === undefined) return void call?.resolve(data.result);
      call?.reject(new WeftError(data.error));
      if (data.fatal) this.end(new WeftError(`${data.error}; load the pipeline again`));
    });
  }

  /** Starts a second worker, which has files and models, for the first one to wait for. */
  wait(settings) {
    const { port1: port, port2: other } = new MessageChannel();
    const state = sharedState();
    this.#stopped = sharedState();
    return new Promise((resolve, reject) => {
      this.#calls.set('host', { resolve, reject });
      const worker = new Worker(new URL('./host_worker.js', import.meta.url), { type: 'module' });
      this.#start(worker, ({ data }) => {
        if (data.event === 'progress') return void this.#progress?.(data.progress);
        this.#calls.delete('host');
        resolve({ port, state, stopped: this.#stopped });
      });
      worker.postMessage({ settings: { ...settings, waiting: true }, port: other, state }, [other]);
    });
  }

  #start(worker, onmessage) {
    this.#workers.push(worker);
    worker.onmessage = onmessage;
    worker.onerror = (event) => {
      const what = event.message || 'a script of the package could not be fetched';
      this.end(new WeftError(`the worker of this pipeline failed: ${what}; load the pipeline again`));
    };
  }

  call(name, argument, { signal, onText } = {}, transferred = []) {
    if (this.#ended) return Promise.reject(this.#ended);
    signal?.throwIfAborted();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#calls.delete(id);
        if (this.#stopped) Atomics.store(this.#stopped, 0, id + 1);
        this.#workers[0].postMessage({ id, name: 'abort' });
        reject(signal.reason);
      };
      const settled = (settle) => (value) => {
        signal?.removeEventListener('abort', abort);
        settle(value);
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.#calls.set(id, { resolve: settled(resolve), reject: settled(reject), onText });
      this.#workers[0].postMessage({ id, name, argument }, transferred);
    });
  }

  end(reason) {
    if (this.#ended) return;
    this.#ended = reason;
    for (const worker of this.#workers) worker.terminate();
    for (const { reject } of this.#calls.values()) reject(reason);
    this.#calls.clear();
  }
}
