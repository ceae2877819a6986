// What WebAssembly asks of the page: files of a checkpoint, and models that ONNX Runtime Web holds.

import { bytesOf } from './encode.js';
import { Engine } from './engine.js';
import { Files } from './files.js';

export class Host {
  #files;
  #engine;
  #checkpoint;
  #page;
  // What the call was given, and what it names by addresses, until it ends.
  #inputs = new Map();

  constructor({ checkpoint, page, cache, headers, threads, ort, webnn, waiting }, progress) {
    this.#checkpoint = `${checkpoint}/`;
    this.#page = page;
    this.#files = new Files({ cache, headers, progress });
    this.#engine = new Engine({ files: this.#files, threads, ort, webnn, jspi: !waiting });
  }

  /** Begins to fetch what most checkpoints have. */
  ahead(folder) {
    this.#files.ahead(folder);
    this.#engine.ahead();
  }

  /** Bytes that came over the network, out of the cache, and that were used. */
  counts() {
    return this.#files.counts();
  }

  /** All that a load reads was read. */
  rest() {
    return this.#files.rest();
  }

  /** Takes a call's images and audio, by the names that its inputs have for them; none ends the call. */
  give(files) {
    this.#inputs.clear();
    for (const [name, file] of Object.entries(files ?? {})) this.#inputs.set(name, bytesOf(file));
  }

  async size(url) {
    return this.#own(url) ? this.#files.size(url) : (await this.#input(url)).length;
  }

  async read(url, offset, length) {
    return this.#own(url) ? this.#files.read(url, offset, length) : (await this.#input(url)).subarray(offset, offset + length);
  }

  /** Says which ranges of a file of the checkpoint are used. */
  plan(url, ranges) {
    if (this.#own(url)) this.#files.plan(url, JSON.parse(ranges));
  }

  /** Begins to fetch what is read next of a file of the checkpoint. */
  expect(url, ranges) {
    if (this.#own(url)) this.#files.expect(url, JSON.parse(ranges));
  }

  #own(url) {
    return url.startsWith(this.#checkpoint);
  }

  /** What a call was given, or the file at an address. */
  #input(url) {
    if (!this.#inputs.has(url)) this.#inputs.set(url, fetched(new URL(url, this.#page)));
    return this.#inputs.get(url);
  }

  version(hardware) {
    return this.#engine.version(hardware);
  }

  open(argument, model, memory) {
    return this.#engine.open(JSON.parse(argument), model, memory);
  }

  run(number, described, bytes) {
    return this.#engine.run(number, JSON.parse(described), bytes);
  }

  /** Whether what models run on is gone. */
  get lost() {
    return this.#engine.lost;
  }

  readTensor(number) {
    return this.#engine.readTensor(number);
  }

  resizeTensor(number, axis, dropped, length) {
    return this.#engine.resizeTensor(number, axis, dropped, length);
  }

  releaseTensor(number) {
    this.#engine.releaseTensor(number);
  }

  release(number) {
    void this.#engine.release(number);
  }
}

async function fetched(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw new Error(`${url} cannot be fetched: ${error.message}; see that its server allows this page by CORS, or give a Blob`);
  }
  if (!response.ok) throw new Error(`${url} was answered by ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}
