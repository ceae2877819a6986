// The worker of a pipeline: runs the package's WebAssembly, one call at a time. Files and ONNX Runtime Web are in it as well, or in
// a worker beside it for which it waits.

import { Host } from './host.js';
import { WaitingHost, withoutPromises } from './waiting.js';
import init, { load, run } from './wasm/weft_web.js';

// It is compiled while files are fetched; where the server does not say that it is WebAssembly, `init` compiles it.
const compiled = WebAssembly.compileStreaming(fetch(new URL('./wasm/weft_web_bg.wasm', import.meta.url))).catch(() => undefined);
let host;
let queue = Promise.resolve();
let running;
let panic;
// The WebAssembly's own.
let memory;
// Where this worker waits for another one, it hears of no message meanwhile: the page writes here which call was aborted.
let stopped;
const aborted = new Set();

const calls = {
  async load({ task, checkpoint, hardware, precisions, waiting, ...settings }) {
    if (waiting) withoutPromises();
    stopped = waiting?.stopped;
    const progress = (progress) => postMessage({ event: 'progress', progress });
    host = waiting ? new WaitingHost(waiting) : new Host({ checkpoint, ...settings }, progress);
    globalThis.weftHost = {
      size: (url) => host.size(url),
      read: (url, offset, length) => host.read(url, offset, length),
      plan: (url, ranges) => host.plan(url, ranges),
      expect: (url, ranges) => host.expect(url, ranges),
      version: (name) => host.version(name),
      open: (argument, model) => host.open(argument, model, memory),
      run: (number, described, bytes) => host.run(number, described, bytes),
      readTensor: (number) => host.readTensor(number),
      resizeTensor: (number, axis, dropped, length) => host.resizeTensor(number, axis, dropped, length),
      releaseTensor: (number) => host.releaseTensor(number),
      release: (number) => host.release(number),
      panicked: (message) => void (panic = message),
      text(piece) {
        postMessage({ event: 'text', id: running, text: piece });
        return !aborted.has(running) && !(stopped && Atomics.load(stopped, 0) === running + 1);
      },
    };
    host.ahead(checkpoint);
    ({ memory } = await init({ module_or_path: await compiled }));
    const loaded = JSON.parse(await load(task, checkpoint, hardware, JSON.stringify(precisions)));
    loaded.about.bytes = host.counts();
    await host.rest();
    progress({ status: 'ready', task, model: checkpoint });
    return loaded;
  },

  async run({ inputs, parameters, files, streaming }) {
    host?.give(files);
    try {
      return JSON.parse(await run(JSON.stringify(inputs), JSON.stringify(parameters), streaming));
    } finally {
      host?.give();
    }
  },
};

onmessage = ({ data: { id, name, argument } }) => {
  if (name === 'abort') return void aborted.add(id);
  queue = queue.then(async () => {
    if (aborted.delete(id)) return;
    running = id;
    try {
      postMessage({ id, result: await calls[name](argument) });
    } catch (error) {
      // After a trap, memory is as it was left, and a graphics processor that was lost does not come back: nothing else can run.
      const fatal = error instanceof WebAssembly.RuntimeError || host?.lost === true;
      const text = panic ? `the runtime ended: ${panic}; please report this` : String(error?.message ?? error);
      postMessage({ id, error: text, fatal });
    }
    aborted.delete(id);
  });
};
