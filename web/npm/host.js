// What WebAssembly asks of the page: files of a checkpoint, and models that ONNX Runtime Web holds.

import { Engine } from './engine.js';
import { Files } from './files.js';

export class Host {
  #files;
  #engine;

  constructor({ cache, headers, threads, ort, waiting }, progress) {
    this.#files = new Files({ cache, headers, progress });
    this.#engine = new Engine({ files: this.#files, threads, ort, jspi: !waiting });
  }

  /** Begins to fetch what most checkpoints have. */
  ahead(folder) {
    this.#files.ahead(folder);
  }

  /** Bytes that came over the network, out of the cache, and that were used. */
  counts() {
    return this.#files.counts();
  }

  size(url) {
    return this.#files.size(url);
  }

  read(url, offset, length) {
    return this.#files.read(url, offset, length);
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

  release(number) {
    void this.#engine.release(number);
  }
}
