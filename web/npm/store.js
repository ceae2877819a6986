// What was fetched of a file, kept part by part: in the origin's private file system (OPFS), which is several times as fast, or in the
// browser's cache where a worker has none.

const FOLDER = 'weft';
const CACHE = 'weft-4';
const PART = 'weft-part';
// The length of the description, which is written last: a part that was not written to its end has none.
const LENGTH = 4;
// Milliseconds after which parts are closed that nothing was read of, and how many are open at once.
const IDLE = 1000;
const OPEN = 256;

/** Where parts are kept; nothing where this context keeps none. */
export async function openStore() {
  // What earlier releases kept says less of versions.
  for (const earlier of ['weft-1', 'weft-2', 'weft-3']) globalThis.caches?.delete?.(earlier).catch(() => {});
  if (globalThis.FileSystemFileHandle?.prototype?.createSyncAccessHandle) {
    try {
      const root = await navigator.storage.getDirectory();
      return new PrivateFiles(await root.getDirectoryHandle(FOLDER, { create: true }));
    } catch {
      // A private window may have none.
    }
  }
  // Only secure contexts have it.
  return globalThis.caches ? new Cached(await caches.open(CACHE)) : undefined;
}

/** Removes all that is kept. */
export async function clearStore() {
  await globalThis.caches?.delete(CACHE);
  const root = await navigator.storage?.getDirectory?.().catch(() => undefined);
  await root?.removeEntry(FOLDER, { recursive: true }).catch((error) => {
    if (error.name !== 'NotFoundError') throw error;
  });
}

/** A folder for each URL, in it a file for each part: the length of its description, that as JSON, and the bytes. */
class PrivateFiles {
  #folder;
  #folders = new Map();
  // Parts that are open, since to open one takes longer than to read it; until nothing was read for a while.
  #opened = new Map();
  #closing;

  constructor(folder) {
    this.#folder = folder;
  }

  /** The bytes of a part between two places, how many it has, and its description; nothing where it is not kept. */
  async get(url, part, from = 0, to = Infinity) {
    clearTimeout(this.#closing);
    this.#closing = setTimeout(() => this.#close(), IDLE);
    // One that was closed meanwhile is opened again.
    for (let attempt = 0; attempt < 2; attempt++) {
      try {
        const opened = await this.#open(url, part);
        const bytes = await opened?.read(from, Math.min(to, opened.size));
        return opened && { described: opened.described, size: opened.size, bytes };
      } catch (error) {
        this.#opened.delete(`${url} ${part}`);
        if (error.name === 'NotFoundError') break;
      }
    }
    return undefined;
  }

  /** Closes what is open, which nobody can remove meanwhile. */
  async rest() {
    clearTimeout(this.#closing);
    await this.#close();
  }

  /** A part that was written to its end. */
  #open(url, part) {
    const key = `${url} ${part}`;
    if (!this.#opened.has(key)) {
      const opened = this.#of(url, false).then(async (folder) => whole(await reading(await folder.getFileHandle(nameOf(part)))));
      this.#opened.set(key, opened);
      opened.then((opened) => opened || this.#opened.delete(key), () => this.#opened.delete(key));
      if (this.#opened.size > OPEN) this.#close(this.#opened.keys().next().value);
    }
    return this.#opened.get(key);
  }

  /** Closes one part, or all of them. */
  async #close(only) {
    const closed = [...this.#opened].filter(([key]) => !only || key === only);
    for (const [key] of closed) this.#opened.delete(key);
    await Promise.allSettled(closed.map(([, opened]) => opened.then((opened) => opened?.close())));
  }

  async put(url, part, bytes, described) {
    const folder = await this.#of(url, true);
    const handle = await folder.getFileHandle(nameOf(part), { create: true });
    let open;
    try {
      open = await handle.createSyncAccessHandle();
    } catch (error) {
      // Another tab is at the same part.
      if (error.name === 'NoModificationAllowedError' || error.name === 'InvalidStateError') return;
      throw error;
    }
    try {
      open.truncate(0);
      const text = new TextEncoder().encode(JSON.stringify({ described, size: bytes.length }));
      written(open, text, LENGTH);
      written(open, bytes, LENGTH + text.length);
      open.flush();
      const length = new Uint8Array(LENGTH);
      new DataView(length.buffer).setUint32(0, text.length, true);
      written(open, length, 0);
      open.flush();
    } finally {
      open.close();
    }
  }

  async forget(url) {
    const name = await hash(url);
    await this.#close();
    for (const create of [true, false]) this.#folders.delete(`${url} ${create}`);
    await this.#folder.removeEntry(name, { recursive: true }).catch(() => {});
  }

  #of(url, create) {
    const key = `${url} ${create}`;
    if (!this.#folders.has(key)) {
      const found = hash(url).then((name) => this.#folder.getDirectoryHandle(name, { create }));
      this.#folders.set(key, found);
      found.catch(() => this.#folders.delete(key));
    }
    return this.#folders.get(key);
  }
}

/** A file to read at any place: by the fast way, or where another tab has it open by the slow one. */
async function reading(file) {
  try {
    const open = await file.createSyncAccessHandle({ mode: 'read-only' });
    const read = (from, to) => {
      const bytes = new Uint8Array(to - from);
      const count = open.read(bytes, { at: from });
      if (count !== bytes.length) throw new Error('it ends earlier');
      return bytes;
    };
    return { size: open.getSize(), read, close: () => open.close() };
  } catch {
    const blob = await file.getFile();
    return { size: blob.size, read: async (from, to) => new Uint8Array(await blob.slice(from, to).arrayBuffer()), close: () => {} };
  }
}

/** The part that a file holds; nothing where it was not written to its end. */
async function whole(file) {
  const length = file.size < LENGTH ? 0 : new DataView((await file.read(0, LENGTH)).buffer).getUint32(0, true);
  const start = LENGTH + length;
  const told = length > 0 && start <= file.size ? new TextDecoder().decode(await file.read(LENGTH, start)) : '{}';
  const { described, size } = JSON.parse(told);
  if (start + size === file.size) return { described, size, read: (from, to) => file.read(start + from, start + to), close: file.close };
  file.close();
  return undefined;
}

function written(open, bytes, at) {
  const count = open.write(bytes, { at });
  if (count !== bytes.length) throw new DOMException('the disk is full', 'QuotaExceededError');
}

function nameOf(part) {
  const name = encodeURIComponent(part).replaceAll('*', '%2A');
  // A long version; the range is at the end.
  return name.length <= 200 ? name : name.slice(0, 100) + name.slice(-100);
}

async function hash(url) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Responses of the browser's cache, whose URLs say which part they are. */
class Cached {
  #cache;
  // Of a part the pieces are read one after the other.
  #last;

  constructor(cache) {
    this.#cache = cache;
  }

  async get(url, part, from = 0, to = Infinity) {
    const key = place(url, part);
    if (this.#last?.key !== key) {
      const response = await this.#cache.match(key).catch(() => undefined);
      if (!response) return undefined;
      const described = JSON.parse(response.headers.get('x-weft') ?? '{}');
      this.#last = { key, described, whole: new Uint8Array(await response.arrayBuffer()) };
    }
    const { described, whole } = this.#last;
    return { described, size: whole.length, bytes: whole.slice(from, Math.min(to, whole.length)) };
  }

  async rest() {
    this.#last = undefined;
  }

  async put(url, part, bytes, described) {
    // Caches refuse answers of ranges.
    this.#last = undefined;
    const headers = { 'x-weft': JSON.stringify(described) };
    await this.#cache.put(place(url, part), new Response(bytes, { headers }));
  }

  async forget(url) {
    this.#last = undefined;
    const keys = await this.#cache.keys().catch(() => []);
    await Promise.all(keys.filter((request) => bare(request.url) === bare(url)).map((request) => this.#cache.delete(request)));
  }
}

function place(url, part) {
  const place = new URL(url);
  place.searchParams.set(PART, part);
  return place.href;
}

/** A URL without the part of the file that is kept under it. */
function bare(url) {
  const place = new URL(url);
  place.searchParams.delete(PART);
  return place.href;
}
