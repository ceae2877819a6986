// The host of a worker that waits for each answer: what stands in for JavaScript Promise Integration where a browser lacks it.
// The page must be isolated (COOP and COEP), since memory is shared.

/** The places of a state that two workers share: whether there is an answer, and the lengths of its text and its bytes. */
export const ANSWERED = 0;
export const TEXT = 1;
export const BYTES = 2;

/** A state for one pair of workers. */
export function sharedState() {
  return new Int32Array(new SharedArrayBuffer(12));
}

// What was thrown last: the glue of wasm-bindgen makes a rejected promise of it, which nothing could wait for.
let failure;

/** Lets that glue call functions that wait as those that answer at once. */
export function withoutPromises() {
  WebAssembly.Suspending = function (answering) {
    return (...parameters) => {
      const answer = answering(...parameters);
      if (!(answer instanceof Promise)) return answer;
      answer.catch(() => {});
      throw failure;
    };
  };
  WebAssembly.promising = (exported) => exported;
}

/** As `Host`, which is in the worker at the other end of the port; every function answers before it returns. */
export class WaitingHost {
  #port;
  #state;

  constructor({ port, state }) {
    this.#port = port;
    this.#state = state;
  }

  ahead(folder) {
    this.#port.postMessage({ name: 'ahead', parameters: [folder], silent: true });
  }

  give(files) {
    this.#port.postMessage({ name: 'give', parameters: [files], silent: true });
  }

  counts() {
    return this.#ask('counts').value;
  }

  rest() {
    this.#ask('rest');
  }

  size(url) {
    return this.#ask('size', url).value;
  }

  read(url, offset, length) {
    return this.#ask('read', url, offset, length).bytes;
  }

  plan(url, ranges) {
    this.#port.postMessage({ name: 'plan', parameters: [url, ranges], silent: true });
  }

  expect(url, ranges) {
    this.#port.postMessage({ name: 'expect', parameters: [url, ranges], silent: true });
  }

  version(hardware) {
    return this.#ask('version', hardware).value;
  }

  open(argument, model, memory) {
    const places = JSON.parse(argument).memory;
    return this.#ask('open', argument, model, places.map(({ at, length }) => new Uint8Array(memory.buffer, at, length).slice())).value;
  }

  run(number, described, given) {
    const { value, bytes } = this.#ask('run', number, described, given);
    return [value, bytes];
  }

  readTensor(number) {
    const { value, bytes } = this.#ask('readTensor', number);
    return [value, bytes];
  }

  resizeTensor(number, axis, dropped, length) {
    return this.#ask('resizeTensor', number, axis, dropped, length).value ?? undefined;
  }

  releaseTensor(number) {
    this.#port.postMessage({ name: 'releaseTensor', parameters: [number], silent: true });
  }

  release(number) {
    this.#port.postMessage({ name: 'release', parameters: [number], silent: true });
  }

  #ask(name, ...parameters) {
    this.#wait({ name, parameters });
    const [text, bytes] = [TEXT, BYTES].map((place) => Atomics.load(this.#state, place));
    const room = new SharedArrayBuffer(text + bytes);
    this.#wait({ room });
    // Text is not decoded from memory that is shared.
    const all = new Uint8Array(room).slice();
    const { error, value } = JSON.parse(new TextDecoder().decode(all.subarray(0, text)));
    if (error !== undefined) throw (failure = new Error(error));
    return { value, bytes: all.subarray(text) };
  }

  #wait(message) {
    Atomics.store(this.#state, ANSWERED, 0);
    this.#port.postMessage(message);
    Atomics.wait(this.#state, ANSWERED, 0);
  }
}
