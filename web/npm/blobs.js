// Blobs of which nothing is read before a slice is asked for: ranges of files, bytes of the WebAssembly's memory, and bfloat16 as float32.

export class LazyBlob extends Blob {
  #read;
  #start;
  #end;

  /** `read(start, end)` gives, or promises, the bytes in between. */
  constructor(read, start, end) {
    super([]);
    this.#read = read;
    this.#start = start;
    this.#end = end;
  }

  get size() {
    return this.#end - this.#start;
  }

  slice(from = 0, to = this.size) {
    return new LazyBlob(this.#read, this.#start + from, Math.min(this.#start + to, this.#end));
  }

  async arrayBuffer() {
    const { buffer, byteOffset, byteLength } = await this.#read(this.#start, this.#end);
    return byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength);
  }

  stream() {
    const read = () => this.arrayBuffer();
    return new ReadableStream({
      async start(controller) {
        controller.enqueue(new Uint8Array(await read()));
        controller.close();
      },
    });
  }
}

/** Bytes of a WebAssembly's memory, copied when they are read. */
export function inMemory(memory, at, length) {
  return new LazyBlob((start, end) => new Uint8Array(memory.buffer, at + start, end - start).slice(), 0, length);
}

/** The float32 numbers of a Blob of bfloat16, twice as long. */
export function widened(narrow) {
  const read = async (start, end) => new Uint8Array(wide(await narrow.slice(start / 2, end / 2).arrayBuffer()).buffer);
  return new LazyBlob(read, 0, 2 * narrow.size);
}

/** A bfloat16 is the upper half of a float32. */
function wide(buffer) {
  const halves = new Uint16Array(buffer);
  const numbers = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) numbers[i] = halves[i] << 16;
  return numbers;
}
