// Files of a checkpoint: small ones whole, weights by the ranges that are used. What was fetched is kept by its URL and version (`ETag`,
// `Last-Modified` or length), so that nothing is fetched twice and a load that broke off goes on where it was; what failed or is not there
// is not kept.

import { LazyBlob } from './blobs.js';
import { openStore } from './store.js';

const WEIGHTS = /\.safetensors$/;
// With the length of the file, most headers come in the first answer.
const HEAD = 64 * 1024;
// Ranges that touch are fetched together, up to this many bytes.
const CHUNK = 16 * 1024 * 1024;
const AT_ONCE = 4;
// Bytes that are held of what was fetched before it was asked for.
const HELD = 128 * 1024 * 1024;
const USUAL = [
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'generation_config.json',
  'modules.json',
  '1_Pooling/config.json',
  'sentence_bert_config.json',
  'config_sentence_transformers.json',
  'model.safetensors',
];

export class Files {
  #options;
  #known = new Map();
  #expected = new Map();
  // Of each file the parts that are fetched and kept whole, and how much of them is there.
  #plans = new Map();
  #store;
  #counts = { fetched: 0, cached: 0, used: 0 };

  constructor(options) {
    this.#options = options;
    this.#store = options.cache ? openStore().catch(() => undefined) : Promise.resolve();
  }

  /** Bytes that came over the network, out of the cache, and that models and tokenizers read. */
  counts() {
    return { ...this.#counts };
  }

  /** Leaves what is kept alone for a while: all that a load reads was read. */
  async rest() {
    await (await this.#store)?.rest();
  }

  /** How many bytes a file has; -1 where there is none. */
  async size(url) {
    return (await this.#find(url))?.size ?? -1;
  }

  /** Begins to fetch what most checkpoints have, all at once; what is asked for next waits for it. */
  ahead(folder) {
    for (const name of USUAL) this.#find(`${folder}/${name}`).catch(() => {});
  }

  /** A range of a file. */
  async read(url, offset, length) {
    const file = await this.#there(url);
    const expected = await this.#expected.get(url);
    const bytes = (await expected?.read(offset, length)) ?? (await this.#range(url, file, offset, length));
    this.#counts.used += bytes.length;
    return bytes;
  }

  /**
   * Says which ranges of a file are used, in whatever pieces they are read: those that touch are one part, which is fetched and kept as a
   * whole.
   */
  plan(url, ranges) {
    const plan = this.#plans.get(url) ?? { parts: [], loaded: 0, total: 0 };
    this.#plans.set(url, plan);
    const more = touching(ranges.filter(([offset, length]) => !partOf(plan.parts, offset, offset + length)));
    if (more.length === 0) return;
    plan.parts = [...plan.parts, ...more.map(({ offset, length }) => ({ offset, length, loaded: 0 }))].sort((a, b) => a.offset - b.offset);
    plan.total = plan.parts.reduce((sum, part) => sum + part.length, 0);
    this.#tell(url, 'download');
  }

  /** Begins to fetch ranges that are read next, piece by piece. */
  expect(url, ranges) {
    this.plan(url, ranges);
    const expected = async () => {
      const file = await this.#there(url);
      const ahead = new Ahead(await this.#chunks(url, ranges), ({ offset, length }) => this.#range(url, file, offset, length));
      ahead.start();
      return ahead;
    };
    // Without the file reading says so.
    this.#expected.set(url, expected().catch(() => undefined));
  }

  /** A file as the engine takes it: a Blob whose slices are fetched, the given ranges ahead of being asked for. */
  async blob(url, ranges) {
    const file = await this.#there(url);
    this.plan(url, ranges);
    this.#counts.used += touching(ranges).reduce((sum, { length }) => sum + length, 0);
    const chunks = await this.#chunks(url, ranges);
    const ahead = new Ahead(chunks, ({ offset, length }) => this.#range(url, file, offset, length));
    // What is kept is read when it is asked for, straight to where it goes.
    const kept = (from, to) => this.#found(url, file, from, to);
    const first = chunks.find(({ offset, length }) => offset + length > file.head.length);
    const begin = first && Math.max(first.offset, file.head.length);
    if (first && !(await kept(begin, begin + 1))) ahead.start();
    const piece = async (chunk, from, to) => (ahead.has(chunk) ? undefined : await kept(from, to)) ?? ahead.read(from, to - from);
    const read = async (start, end) => {
      const within = partOf(chunks, start, end);
      if (within) return piece(within, start, end);
      const bytes = new Uint8Array(end - start);
      let filled = 0;
      for (const chunk of chunks) {
        const from = Math.max(start, chunk.offset);
        const to = Math.min(end, chunk.offset + chunk.length);
        if (from >= to) continue;
        bytes.set(await piece(chunk, from, to), from - start);
        filled += to - from;
      }
      return filled === bytes.length ? bytes : this.#range(url, file, start, end - start);
    };
    return new LazyBlob(read, 0, file.size);
  }

  /**
   * The parts that ranges are in, in the order of the ranges, and how many bytes are read of each; where nothing is kept, the ranges alone, since what else a part
   * has would be fetched again.
   */
  async #chunks(url, ranges) {
    if (!(await this.#store)) return touching(ranges);
    const { parts } = this.#plans.get(url);
    const chunks = new Map();
    for (const [offset, length] of ranges) {
      const part = partOf(parts, offset, offset + length);
      if (!part || length === 0) continue;
      if (!chunks.has(part)) chunks.set(part, { offset: part.offset, length: part.length, uses: 0 });
      chunks.get(part).uses += length;
    }
    return [...chunks.values()];
  }

  /** How much of a file's parts is there. */
  #tell(url, status) {
    const { loaded, total } = this.#plans.get(url);
    this.#options.progress({ status, file: url, loaded, total, progress: Math.min(100, (100 * loaded) / total) });
  }

  /** More of a part is there; all of it where it is not said how much. */
  #loaded(url, part, bytes = Infinity) {
    const more = part ? Math.min(bytes, part.length - part.loaded) : 0;
    if (more === 0) return;
    part.loaded += more;
    this.#plans.get(url).loaded += more;
    this.#tell(url, 'progress');
  }

  async #there(url) {
    const file = await this.#find(url);
    if (!file) throw new Error(`${url} is not there`);
    return file;
  }

  #find(url) {
    if (!this.#known.has(url)) {
      const found = this.#look(url);
      this.#known.set(url, found);
      // What failed may succeed when it is asked for again.
      found.catch(() => this.#known.delete(url));
    }
    return this.#known.get(url);
  }

  /** The size of a file with its version and its beginning, or all of it; nothing where there is none. */
  async #look(url) {
    const kept = await this.#kept(url, 'head');
    if (kept && (await this.#current(url, kept.described))) {
      this.#counts.cached += kept.bytes.length;
      return { size: kept.described.size, version: kept.described.version, head: kept.bytes };
    }
    if (kept) await (await this.#store)?.forget(url);
    const wanted = WEIGHTS.test(url) ? { Range: `bytes=0-${HEAD - 1}` } : {};
    const response = await this.#fetch(url, wanted);
    // Most files are optional. It may be there at the next load.
    if (response.status === 404 || response.status === 410) return undefined;
    if (!response.ok) throw new Error(refusal(url, response));
    const range = response.status === 206 ? /\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '') : undefined;
    const head = new Uint8Array(await response.arrayBuffer());
    this.#counts.fetched += head.length;
    if (response.status === 206 && !range) {
      const help = 'let it send Access-Control-Expose-Headers: Content-Range';
      throw new Error(`the server of ${url} does not say how long the file is: ${help}`);
    }
    const size = range ? Number(range[1]) : head.length;
    const validator = validatorOf(response);
    const version = validator ?? String(size);
    await this.#keep(url, 'head', head, { size, version, validator });
    return { size, version, head };
  }

  /** Whether what is kept of a file is what the server has today, as far as it says; without a network it is. */
  async #current(url, kept) {
    let response;
    try {
      response = await fetch(url, { method: 'HEAD', headers: this.#options.headers });
    } catch {
      return true;
    }
    if (response.status === 404 || response.status === 410) return false;
    // Some servers know no HEAD.
    if (!response.ok) return true;
    const [before, today] = [kept.validator, validatorOf(response)];
    if (before && today) return before === today;
    // The length of a small file may be that of its compressed form: it is fetched again.
    const length = response.headers.get('Content-Length');
    return WEIGHTS.test(url) && (!length || length === String(kept.size));
  }

  /** A range of a file: of what it begins with, out of what is kept, or over the network. */
  async #range(url, file, offset, length) {
    const { size, head } = file;
    const end = Math.min(offset + length, size);
    if (end <= head.length) {
      const part = partOf(this.#plans.get(url)?.parts, offset, end);
      if (part && part.offset + part.length <= head.length) this.#loaded(url, part);
      return head.subarray(offset, end);
    }
    if (offset < head.length) return joined(head.subarray(offset), await this.#range(url, file, head.length, end - head.length));
    // Of several tabs that load the same, one fetches a part and the others wait for it.
    const { key } = await this.#place(url, file, offset, end);
    const fetched = async () => (await this.#found(url, file, offset, end)) ?? this.#fetchPart(url, file, offset, end);
    return (await this.#found(url, file, offset, end)) ?? this.#alone(`weft ${url} ${key}`, fetched);
  }

  /** Where a range behind a file's beginning is kept: the part that it is in, or by itself where nothing is kept or it is in none. */
  async #place(url, { size, version, head }, offset, end) {
    const part = partOf(this.#plans.get(url)?.parts, offset, end);
    const place = { start: offset, end, part };
    if (part && (await this.#store)) {
      place.start = Math.max(part.offset, head.length);
      place.end = Math.min(part.offset + part.length, size);
      place.whole = true;
    }
    return { ...place, key: `${version} ${place.start}-${place.end}` };
  }

  /** A range out of what is kept; nothing where it is not. */
  async #found(url, file, offset, end) {
    const { head } = file;
    if (end <= head.length) return head.slice(offset, end);
    if (offset < head.length) {
      const rest = await this.#found(url, file, head.length, end);
      return rest && joined(head.subarray(offset), rest);
    }
    const store = await this.#store;
    if (!store) return undefined;
    const { start, end: last, part, key } = await this.#place(url, file, offset, end);
    const kept = await store.get(url, key, offset - start, end - start);
    if (kept?.size !== last - start) return undefined;
    this.#counts.cached += kept.bytes.length;
    this.#loaded(url, part);
    return kept.bytes;
  }

  /** Fetches the part that a range is in, and keeps it; the range. */
  async #fetchPart(url, file, offset, wanted) {
    const { start, end, part, whole, key } = await this.#place(url, file, offset, wanted);
    const response = await this.#fetch(url, { Range: `bytes=${start}-${end - 1}` });
    if (response.status !== 206) {
      const problem = response.ok ? 'it answers a range with the whole file' : refusal(url, response);
      throw new Error(`the server of ${url} cannot be read in ranges: ${problem}; serve it by one that takes Range`);
    }
    const bytes = new Uint8Array(end - start);
    let filled = 0;
    const reader = response.body.getReader();
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      if (filled + value.length > bytes.length) break;
      bytes.set(value, filled);
      filled += value.length;
      this.#loaded(url, part, value.length);
    }
    if (filled !== bytes.length) throw new Error(`${url} broke off after ${filled} of ${bytes.length} bytes: load it again`);
    // What it begins with came with the file's beginning.
    if (whole) this.#loaded(url, part);
    this.#counts.fetched += filled;
    await this.#keep(url, key, bytes, {});
    return bytes.subarray(offset - start, wanted - start);
  }

  async #fetch(url, headers) {
    try {
      return await fetch(url, { headers: { ...this.#options.headers, ...headers } });
    } catch (error) {
      const help = 'see that the network is there, and that the server allows this page by CORS';
      throw new Error(`${url} cannot be fetched: ${error.message}; ${help}`);
    }
  }

  async #kept(url, part) {
    return (await this.#store)?.get(url, part);
  }

  /** Lets no other tab do the same meanwhile, where what it does is kept. */
  async #alone(name, work) {
    const locks = globalThis.navigator?.locks;
    return locks && (await this.#store) ? locks.request(name, work) : work();
  }

  async #keep(url, part, bytes, described) {
    const store = await this.#store;
    if (!store) return;
    try {
      await store.put(url, part, bytes, described);
    } catch (error) {
      // A full disk ends keeping, not loading.
      this.#store = Promise.resolve();
      const problem = `what is fetched from here on is not kept: ${error.message}`;
      this.#options.progress({ status: 'warning', file: url, message: problem });
    }
  }
}

/** Parts that are fetched before they are asked for, as many as there is room for; one that was used up is no longer held. */
class Ahead {
  #chunks;
  #fetch;
  #fetched = new Map();
  #next = 0;
  #fetching = 0;
  #held = 0;

  constructor(chunks, fetch) {
    this.#chunks = chunks;
    this.#fetch = fetch;
  }

  /** Whether a chunk is held or on its way. */
  has(chunk) {
    return this.#fetched.get(chunk) !== undefined;
  }

  /** Bytes of one chunk; nothing where none has them. */
  async read(offset, length) {
    const chunk = partOf(this.#chunks, offset, offset + length);
    if (!chunk) return undefined;
    const whole = await (this.#fetched.get(chunk) ?? this.#begin(chunk));
    this.#used(chunk, length);
    this.start();
    return whole.subarray(offset - chunk.offset, offset - chunk.offset + length);
  }

  /** Begins to fetch. */
  start() {
    while (this.#next < this.#chunks.length && this.#fetching < AT_ONCE && this.#held < HELD) {
      const chunk = this.#chunks[this.#next++];
      if (!this.#fetched.has(chunk)) this.#begin(chunk);
    }
  }

  /** So many bytes of a chunk were used, which has no more uses than its ranges have bytes. */
  #used(chunk, bytes) {
    chunk.uses -= bytes;
    if (chunk.uses > 0 || !this.has(chunk)) return;
    this.#fetched.set(chunk, undefined);
    this.#held -= chunk.length;
  }

  #begin(chunk) {
    this.#held += chunk.length;
    this.#fetching += 1;
    const fetched = this.#fetch(chunk).finally(() => {
      this.#fetching -= 1;
      this.start();
    });
    // What is wrong is heard when the engine asks for it.
    fetched.catch(() => {});
    this.#fetched.set(chunk, fetched);
    return fetched;
  }
}

function joined(first, rest) {
  const bytes = new Uint8Array(first.length + rest.length);
  bytes.set(first);
  bytes.set(rest, first.length);
  return bytes;
}

/** The part that a range lies in, of parts in any order; nothing where it lies in none. */
function partOf(parts, start, end) {
  return parts?.find(({ offset, length }) => offset <= start && end <= offset + length);
}

/** Ranges with those that touch as one, none longer than a chunk where it was not one tensor, in the order of the first of each. */
export function touching(ranges) {
  const sorted = ranges.map(([offset, length], first) => ({ offset, length, first, uses: length })).sort((a, b) => a.offset - b.offset);
  const chunks = [];
  for (const range of sorted) {
    const last = chunks.at(-1);
    const end = last && last.offset + last.length;
    const inside = last && range.offset + range.length <= end;
    if (inside || (last && range.offset <= end && range.offset + range.length - last.offset <= CHUNK)) {
      last.length = Math.max(last.length, range.offset + range.length - last.offset);
      last.first = Math.min(last.first, range.first);
      last.uses += range.length;
    } else if (range.length > 0) {
      chunks.push(range);
    }
  }
  return chunks.sort((a, b) => a.first - b.first);
}

/** What a server tells versions of a file apart by; other origins see `ETag` only where it is exposed, and `Last-Modified` always. */
function validatorOf({ headers }) {
  return headers.get('ETag') ?? headers.get('Last-Modified');
}

function refusal(url, response) {
  const help = {
    401: 'the repository needs a token: give it as headers: {Authorization: "Bearer …"}',
    403: 'access was not granted: ask for it at the repository',
    429: 'too many requests: wait a while, and load it again',
  }[response.status];
  return `${url} was answered by ${response.status} ${response.statusText}${help ? `; ${help}` : ''}`;
}
