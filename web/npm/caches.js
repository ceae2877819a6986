// Tensors of KV caches of fixed capacity (`StaticCache`): on the graphics processor in buffers of their own, of which a run reads some and
// writes others, so that nothing is allocated from one token to the next.

/** Views of elements' bytes. */
export const TYPES = { float32: Float32Array, float16: Uint16Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };

/** The tensors of caches, and the buffers that they leave for others. */
export class Caches {
  #ort;
  #device;
  // Buffers that no tensor holds, by their size.
  #free = new Map();
  // The buffers of tensors.
  #buffers = new WeakMap();

  constructor(ort, device) {
    this.#ort = ort;
    this.#device = device;
  }

  /** Tensors for those outputs of a session that are caches of fixed capacity, by their names; none for the rest. */
  outputs(session, cached) {
    const fetches = {};
    let any = false;
    session.outputNames.forEach((name, at) => {
      const { type, shape } = session.outputMetadata[at];
      const fits = name.startsWith(cached) && shape?.every((length) => length > 0) && this.#holds(sizeOf(type, shape));
      fetches[name] = fits ? this.#tensor(type, shape) : null;
      any ||= fits;
    });
    return any ? fetches : undefined;
  }

  /** Whether a buffer may be as large. */
  #holds(bytes) {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.#device.limits;
    return bytes <= Math.min(maxBufferSize, maxStorageBufferBindingSize);
  }

  #tensor(type, dims, zeros = false) {
    const size = Math.ceil(sizeOf(type, dims) / 16) * 16;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const found = zeros ? undefined : this.#free.get(size)?.pop();
    const buffer = found ?? this.#device.createBuffer({ size, usage });
    const tensor = this.#ort.Tensor.fromGpuBuffer(buffer, { dataType: type, dims });
    this.#buffers.set(tensor, buffer);
    return tensor;
  }

  /** The elements of such a tensor, which stays where it is. */
  async read(tensor) {
    const buffer = this.#buffers.get(tensor);
    if (!buffer) return undefined;
    const staging = this.#device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
    this.#device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const bytes = staging.getMappedRange().slice(0, sizeOf(tensor.type, tensor.dims));
    staging.destroy();
    return new TYPES[tensor.type](bytes);
  }

  /**
   * A tensor without its last positions along an axis, and of these the last ones, or zeros before them: `length` of them, or all that
   * are left. None where they cannot be copied where they lie.
   */
  resized(tensor, axis, dropped, length) {
    if (tensor.location !== 'gpu-buffer') return undefined;
    const end = tensor.dims[axis] - dropped;
    const start = length === undefined ? 0 : end - length;
    const dims = tensor.dims.with(axis, end - start);
    const inner = sizeOf(tensor.type, dims.slice(axis + 1));
    const [from, to] = [tensor.dims[axis] * inner, (end - start) * inner];
    const kept = (end - Math.max(start, 0)) * inner;
    if (kept === 0 || [from, to, kept].some((bytes) => bytes % 4) || !this.#holds(sizeOf(tensor.type, dims))) return undefined;
    const made = this.#tensor(tensor.type, dims, true);
    const encoder = this.#device.createCommandEncoder();
    for (let row = 0; row < product(dims.slice(0, axis)); row += 1) {
      const at = row * from + Math.max(start, 0) * inner;
      encoder.copyBufferToBuffer(tensor.gpuBuffer, at, made.gpuBuffer, (row + 1) * to - kept, kept);
    }
    this.#device.queue.submit([encoder.finish()]);
    return made;
  }

  /** A tensor is not read any more, and its buffer is for another; whether it is one of these. */
  release(tensor) {
    const buffer = this.#buffers.get(tensor);
    if (!buffer) return false;
    this.#buffers.delete(tensor);
    if (!this.#free.has(buffer.size)) this.#free.set(buffer.size, []);
    this.#free.get(buffer.size).push(buffer);
    return true;
  }

  /** Gives back what no tensor holds: caches grew, or none goes on. */
  clear() {
    for (const buffer of [...this.#free.values()].flat()) buffer.destroy();
    this.#free.clear();
  }
}

function product(lengths) {
  return lengths.reduce((all, length) => all * length, 1);
}

/** The bytes of so many elements. */
export function sizeOf(type, dims) {
  return product(dims) * TYPES[type].BYTES_PER_ELEMENT;
}
