// Keeps what the page and the package are made of, for visits without a network: each file as it was fetched last.

const NAME = 'weft-demo';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  // Checkpoints come in ranges, and their files are kept by the package.
  const own = url.origin === location.origin && request.method === 'GET' && !request.headers.has('Range');
  if (own && /\/$|\.(html|css|js|mjs|wasm)$/.test(url.pathname)) event.respondWith(answer(request));
});

async function answer(request) {
  const cache = await caches.open(NAME);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}
