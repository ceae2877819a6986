// Serves folders on loopback, as a page's server does: ranges, types, and what each file's bytes were asked for.
//
//   node serve.mjs PORT /=FOLDER /models/=FOLDER

import { createServer } from 'node:http';
import { open } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.css': 'text/css',
};

/**
 * Starts a server; `mounts` are folders by the beginnings of paths, `maxAge` the seconds for which browsers keep all but
 * checkpoints, and `before` may answer in place of the server: it then gives true.
 */
export function serve(port, mounts, { isolated = false, maxAge = 0, before } = {}) {
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const [prefix, folder] = mounts.filter(([prefix]) => path.startsWith(prefix)).sort((a, b) => b[0].length - a[0].length)[0] ?? [];
    const inner = prefix && normalize(path.slice(prefix.length) || 'index.html');
    const headers = { 'Cache-Control': maxAge > 0 && !/\.(json|safetensors)$/.test(path) ? `max-age=${maxAge}` : 'no-store' };
    if (isolated) {
      headers['Cross-Origin-Opener-Policy'] = 'same-origin';
      headers['Cross-Origin-Embedder-Policy'] = 'require-corp';
    }
    if (await before?.(request, response)) return;
    let file;
    try {
      if (!prefix || inner.startsWith('..')) throw new Error('outside');
      file = await open(join(folder, inner));
      const { size, mtime } = await file.stat();
      const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
      const start = range ? Number(range[1]) : 0;
      const end = range && range[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
      Object.assign(headers, {
        'Content-Type': TYPES[extname(inner)] ?? 'application/octet-stream',
        'Content-Length': end - start + 1,
        'Accept-Ranges': 'bytes',
        'Last-Modified': mtime.toUTCString(),
      });
      if (range) headers['Content-Range'] = `bytes ${start}-${end}/${size}`;
      response.writeHead(range ? 206 : 200, headers);
      // Who asks for the headers alone gets no bytes.
      if (request.method === 'HEAD') return void response.end();
      asked.push({ path, start, end: end + 1 });
      if (size === 0) return void response.end();
      await pipeline(file.createReadStream({ start, end, autoClose: false }), response);
    } catch {
      // Who asked may have left.
      if (response.headersSent) return void response.destroy();
      asked.push({ path, missing: true });
      response.writeHead(404, headers).end();
    } finally {
      await file?.close();
    }
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve({ server, asked })));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [port, ...mounts] = process.argv.slice(2);
  await serve(Number(port), mounts.map((mount) => mount.split('=')));
  console.log(`http://127.0.0.1:${port}/`);
}
