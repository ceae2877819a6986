import type { Tasks } from './tasks.js';

export * from './tasks.js';

/**
 * Where a model runs: on the processor (`wasm`, which every browser has, and which is taken where nothing is named), by WebGPU, or by WebNN on the device that
 * its name ends with, `webnn` alone on the processor. `auto` is WebGPU where the browser has a graphics processor that is no software device and the model can be loaded
 * there, else `wasm`; `about.explanation` says why. A device that was named never falls back.
 */
export type Device = 'auto' | 'wasm' | 'cpu' | 'webgpu' | 'webnn' | 'webnn-cpu' | 'webnn-gpu' | 'webnn-npu';

/**
 * What weights are computed in; those of 8 bits and fewer are quantized as they arrive, of `q4-mixed` the head, the embedding and the layers that
 * lose most by it in 8 bits. `auto` is single precision.
 */
export type Dtype = 'auto' | 'fp32' | 'fp16' | 'bf16' | 'q8' | 'int8' | 'q4' | 'q4-mixed' | 'q3' | 'q2';

/** What a load tells of. `loaded` and `total` are bytes. */
export type Progress =
  | { status: 'download' | 'progress'; file: string; loaded: number; total: number; progress: number }
  | { status: 'warning'; file: string; message: string }
  | { status: 'ready'; task: string; model: string };

export interface LoadOptions {
  device?: Device;
  /** Of all weights, or by modules: `{ '*': 'q4', vision_tower: 'fp32' }`, by a part of their names or a pattern with `*`. On `webgpu` `fp16` needs `shader-f16`. */
  dtype?: Dtype | Record<string, Dtype>;
  /** What a decoder's cached keys and values are kept in; single precision where not given. */
  kv_cache_dtype?: 'auto' | 'fp32' | 'q8' | 'int8' | 'q4';
  progress?: (progress: Progress) => void;
  /** Ends loading; what was fetched is kept. */
  signal?: AbortSignal;
  /** Keeps what was fetched; true where not given. `clearCache` removes it. */
  cache?: boolean;
  /** The hub that ids are of; `https://huggingface.co` where not given. */
  host?: string;
  /** The branch, tag or commit of an id; `main` where not given. */
  revision?: string;
  /** Sent with each request, such as `Authorization`. */
  headers?: Record<string, string>;
  /** Threads of `wasm`, where the page is isolated (COOP and COEP); 4 at most where not given, and 1 elsewhere. */
  threads?: number;
  /** The folder of ONNX Runtime Web's files; the package's own where not given. */
  ort?: string;
}

/** What was loaded. */
export interface About {
  architecture: string;
  device: string;
  /** Why it runs where it runs. */
  explanation: string;
  /** The browser's graphics processor and its limits, in bytes and threads, where the device is `webgpu` or `auto` and there is one. */
  graphics?: {
    name: string;
    software: boolean;
    f16: boolean;
    maxBufferSize: number;
    maxStorageBufferBindingSize: number;
    maxComputeInvocationsPerWorkgroup: number;
  };
  /** Nodes of the graph by the provider that runs them; without any for `wasm`. */
  placement: Record<string, number>;
  graph_ms: number;
  lower_ms: number;
  compile_ms: number;
  /** Bytes that came over the network, out of the cache, and that were used. */
  bytes: { fetched: number; cached: number; used: number };
}

export interface RunOptions {
  /** Rejects the call; text generation ends with the next token, other calls end on their own. */
  signal?: AbortSignal;
}

/** What a loaded pipeline has beside being a function of inputs and of the parameters of `transformers.pipeline`. */
export interface Pipeline {
  readonly task: string;
  readonly device: string;
  readonly about: About;
  /** Ends its worker, which gives back all of its memory. */
  dispose(): Promise<void>;
}

/** Is told of each piece of text as it is generated. */
export interface StreamOptions {
  onText?: (piece: string) => void;
}

export type Task = keyof Tasks;

/** An error of a pipeline, with the way out in its message. */
export class WeftError extends Error {}

/**
 * Loads a checkpoint for a task.
 *
 * @param task The task, as `transformers.pipeline` names it.
 * @param model An id of the hub, `org/name`, or the URL of a folder with `config.json` and `model.safetensors`.
 */
export function pipeline<T extends Task>(
  task: T,
  model: string,
  options?: LoadOptions,
): Promise<Tasks[T] & Pipeline>;

/** Removes all files of checkpoints that were kept. */
export function clearCache(): Promise<void>;
