// The worker of a pipeline: fetches files, holds ONNX Runtime Web, and runs the package's WebAssembly, one call at a time.

import { Engine } from './engine.js';
import { Files } from './files.js';
import init, { load, run } from './wasm/weft_web.js';

let queue = Promise.resolve();
let running;
let panic;
const aborted = new Set();

const calls = {
  async load({ task, checkpoint, hardware, precision, cache, headers, threads, ort }) {
    const files = new Files({ cache, headers, progress: (progress) => postMessage({ event: 'progress', progress }) });
    const engine = new Engine({ files, threads, ort });
    globalThis.weftHost = {
      size: (url) => files.size(url),
      read: (url, offset, length) => files.read(url, offset, length),
      version: (name) => engine.version(name),
      open: (argument, model, memory) => engine.open(JSON.parse(argument), model, memory),
      run: (number, described, bytes) => engine.run(number, JSON.parse(described), bytes),
      release: (number) => void engine.release(number),
      panicked: (message) => void (panic = message),
      text(piece) {
        postMessage({ event: 'text', id: running, text: piece });
        return !aborted.has(running);
      },
    };
    files.ahead(checkpoint);
    await init();
    const loaded = JSON.parse(await load(task, checkpoint, hardware, precision));
    loaded.about.bytes = files.counts();
    postMessage({ event: 'progress', progress: { status: 'ready', task, model: checkpoint } });
    return loaded;
  },

  async run({ inputs, parameters, streaming }) {
    return JSON.parse(await run(JSON.stringify(inputs), JSON.stringify(parameters), streaming));
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
      // After a trap, memory is as it was left: nothing else can run in it.
      const fatal = error instanceof WebAssembly.RuntimeError;
      const text = fatal && panic ? `the runtime ended: ${panic}; please report this` : String(error?.message ?? error);
      postMessage({ id, error: text, fatal });
    }
    aborted.delete(id);
  });
};
