// Sentences by meaning: loads a checkpoint once for each choice, and compares a query with texts.

// `?package=FOLDER/` takes another package, of this origin alone: a link to this page must not bring scripts of others.
const packed = new URL(new URLSearchParams(location.search).get('package') ?? './package/', location.href);
if (packed.origin !== location.origin) throw new Error(`${packed.href} is of another origin: serve the package beside this page`);
const { pipeline } = await import(new URL('index.js', packed).href);

const find = (id) => document.getElementById(id);
const [form, status, bar, failure, table] = ['form', 'status', 'progress', 'error', 'results'].map(find);
const asked = new URLSearchParams(location.search).get('model');
if (asked) find('model').value = asked;

let loaded;
let stopping;

find('stop').addEventListener('click', () => stopping?.abort());

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  failure.textContent = '';
  stopping = new AbortController();
  find('run').disabled = true;
  find('stop').disabled = false;
  try {
    const embed = await load(find('model').value.trim(), find('device').value, stopping.signal);
    const texts = find('texts').value.split('\n').map((text) => text.trim()).filter(Boolean);
    const start = performance.now();
    const vectors = await embed([find('query').value, ...texts], { normalize_embeddings: true, signal: stopping.signal });
    const ms = performance.now() - start;
    show(texts, vectors);
    status.textContent = `${about(embed)}; ${vectors.length} texts in ${ms.toFixed(0)} ms.${await memory()}`;
  } catch (error) {
    status.textContent = '';
    failure.textContent = error.name === 'AbortError' ? 'Stopped.' : error.message;
  } finally {
    bar.hidden = true;
    find('run').disabled = false;
    find('stop').disabled = true;
  }
});

async function load(model, device, signal) {
  const key = `${device} ${model}`;
  if (loaded?.key === key) return loaded.embed;
  await loaded?.embed.dispose();
  loaded = undefined;
  status.textContent = 'Loading …';
  const start = performance.now();
  const embed = await pipeline('sentence-embedding', model, { device, signal, progress });
  loaded = { key, embed, ms: performance.now() - start };
  return embed;
}

function progress({ status: what, loaded: bytes, total, message }) {
  if (what === 'warning') failure.textContent = message;
  if (total === undefined) return;
  bar.hidden = false;
  bar.value = bytes / total;
  status.textContent = `Loading: ${(bytes / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
}

function about({ device, about: { bytes, architecture } }) {
  const from = `${(bytes.fetched / 1e6).toFixed(1)} MB fetched, ${(bytes.cached / 1e6).toFixed(1)} MB kept from before`;
  return `${architecture} on ${device}, loaded in ${(loaded.ms / 1000).toFixed(1)} s (${from})`;
}

/** What the page and its workers take, where the browser tells. */
async function memory() {
  if (!crossOriginIsolated || !performance.measureUserAgentSpecificMemory) return '';
  const { bytes } = await performance.measureUserAgentSpecificMemory();
  return ` Memory: ${(bytes / 1e6).toFixed(0)} MB.`;
}

function show(texts, [query, ...vectors]) {
  const cosine = (vector) => vector.reduce((sum, x, index) => sum + x * query[index], 0);
  const rows = texts.map((text, index) => ({ text, score: cosine(vectors[index]) }));
  rows.sort((a, b) => b.score - a.score);
  table.tBodies[0].replaceChildren(
    ...rows.map(({ text, score }) => {
      const row = document.createElement('tr');
      row.append(document.createElement('td'), document.createElement('td'));
      row.cells[0].textContent = text;
      row.cells[1].textContent = score.toFixed(3);
      return row;
    }),
  );
  table.hidden = false;
}
