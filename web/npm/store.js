// What was fetched of a file, kept part by part: in the origin's private file system (OPFS), which is several times as fast, or in the
// browser's cache where a worker has none.

const FOLDER = 'weft';
const CACHE = 'weft-4';
const PART = 'weft-part';
// The length of the description, which is written last: a part that was not written to its end has none.
const LENGTH = 4;

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

  constructor(folder) {
    this.#folder = folder;
  }

  async get(url, part) {
    try {
      const folder = await this.#of(url, false);
      const file = await folder.getFileHandle(nameOf(part));
      const bytes = (await readable(file)) ?? new Uint8Array(await (await file.getFile()).arrayBuffer());
      if (bytes.length < LENGTH) return undefined;
      const length = new DataView(bytes.buffer).getUint32(0, true);
      if (length === 0 || LENGTH + length > bytes.length) return undefined;
      const { described, size } = JSON.parse(new TextDecoder().decode(bytes.subarray(LENGTH, LENGTH + length)));
      const body = bytes.subarray(LENGTH + length);
      return body.length === size ? { described, bytes: body } : undefined;
    } catch {
      return undefined;
    }
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

/** The whole of a file by the fast way; nothing where another tab has it open. */
async function readable(file) {
  let open;
  try {
    open = await file.createSyncAccessHandle({ mode: 'read-only' });
  } catch {
    return undefined;
  }
  try {
    const bytes = new Uint8Array(open.getSize());
    open.read(bytes, { at: 0 });
    return bytes;
  } finally {
    open.close();
  }
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

  constructor(cache) {
    this.#cache = cache;
  }

  async get(url, part) {
    const response = await this.#cache.match(place(url, part)).catch(() => undefined);
    if (!response) return undefined;
    const described = JSON.parse(response.headers.get('x-weft') ?? '{}');
    return { described, bytes: new Uint8Array(await response.arrayBuffer()) };
  }

  async put(url, part, bytes, described) {
    // Caches refuse answers of ranges.
    const headers = { 'x-weft': JSON.stringify(described) };
    await this.#cache.put(place(url, part), new Response(bytes, { headers }));
  }

  async forget(url) {
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
