// Embeddings, chat, transcription and detection, each by a checkpoint that is loaded once for each choice.

// `?package=FOLDER/` takes another package, of this origin alone: a link to this page must not bring scripts of others.
const asked = new URLSearchParams(location.search);
const packed = new URL(asked.get('package') ?? './package/', location.href);
if (packed.origin !== location.origin) throw new Error(`${packed.href} is of another origin: serve the package beside this page`);
const { pipeline } = await import(new URL('index.js', packed).href);
// What this page and the package are made of stays for visits without a network; checkpoints keep themselves.
navigator.serviceWorker
  ?.register('./offline.js')
  .then(async () => {
    // What came before the service worker was there.
    const own = performance.getEntriesByType('resource').map(({ name }) => name);
    const kept = [location.pathname, ...own.filter((name) => name.startsWith(location.origin) && /\.(css|m?js)$/.test(name))];
    await (await caches.open('weft-demo')).addAll(kept);
  })
  .catch(() => {});

const find = (id) => document.getElementById(id);
const [status, bar, failure, stop] = ['status', 'progress', 'error', 'stop'].map(find);
const TASKS = {
  embed: ['sentence-embedding', 'sentence-transformers/all-MiniLM-L6-v2'],
  chat: ['text-generation', 'HuggingFaceTB/SmolLM2-135M-Instruct'],
  speech: ['automatic-speech-recognition', 'openai/whisper-tiny'],
  detect: ['object-detection', 'hustvl/yolos-tiny'],
};
const models = Object.fromEntries(Object.entries(TASKS).map(([name, [, model]]) => [name, asked.get(name) ?? model]));
const tabs = [...document.querySelectorAll('[role=tab]')];
let tab = 'embed';
let loaded;
let stopping;

function show(chosen, focus) {
  models[tab] = find('model').value.trim() || models[tab];
  tab = chosen;
  for (const one of tabs) {
    const name = one.getAttribute('aria-controls');
    one.setAttribute('aria-selected', String(name === tab));
    one.tabIndex = name === tab ? 0 : -1;
    find(name).hidden = name !== tab;
    if (name === tab && focus) one.focus();
  }
  find('model').value = models[tab];
}

for (const one of tabs) {
  one.addEventListener('click', () => show(one.getAttribute('aria-controls')));
  one.addEventListener('keydown', ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step) show(tabs.at((tabs.indexOf(one) + step) % tabs.length).getAttribute('aria-controls'), true);
  });
}
find('model').value = models.embed;
find('settings').addEventListener('submit', (event) => event.preventDefault());
stop.addEventListener('click', () => stopping?.abort());

/** Does what a button asks for with the tab's pipeline; one at a time. */
async function work(task) {
  if (stopping) return;
  failure.textContent = '';
  stopping = new AbortController();
  stop.disabled = false;
  const { signal } = stopping;
  try {
    const run = await load(signal);
    const start = performance.now();
    const said = await task(run, signal);
    const ms = performance.now() - start;
    const line = `${about(run)}; ${said ?? `${ms.toFixed(0)} ms`}.`;
    status.textContent = line;
    // Browsers tell it when they next tidy up, which may be a minute later.
    void memory().then((taken) => status.textContent === line && (status.textContent += taken), () => {});
  } catch (error) {
    status.textContent = '';
    failure.textContent = error.name === 'AbortError' ? 'Stopped.' : error.message;
  } finally {
    bar.hidden = true;
    stop.disabled = true;
    stopping = undefined;
  }
}

async function load(signal) {
  models[tab] = find('model').value.trim();
  const [device, dtype] = [find('device').value, find('dtype').value];
  const key = [tab, models[tab], device, dtype].join(' ');
  if (loaded?.key === key) return loaded.run;
  await loaded?.run.dispose();
  loaded = undefined;
  status.textContent = 'Loading …';
  const start = performance.now();
  const run = await pipeline(TASKS[tab][0], models[tab], { device, dtype, signal, progress });
  loaded = { key, run, ms: performance.now() - start };
  return run;
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

const item = (text, ...more) => {
  const made = document.createElement('li');
  made.append(text, ...more);
  return made;
};

find('compare').addEventListener('click', () =>
  work(async (embed, signal) => {
    const texts = find('texts').value.split('\n').map((text) => text.trim()).filter(Boolean);
    const [query, ...vectors] = await embed([find('query').value, ...texts], { normalize_embeddings: true, signal });
    const cosine = (vector) => vector.reduce((sum, x, index) => sum + x * query[index], 0);
    const rows = texts.map((text, index) => ({ text, score: cosine(vectors[index]) })).sort((a, b) => b.score - a.score);
    find('results').replaceChildren(
      ...rows.map(({ text, score }) => {
        const shown = document.createElement('span');
        shown.textContent = score.toFixed(3);
        return item(text, shown);
      }),
    );
  }),
);

const messages = [];
find('send').addEventListener('click', () =>
  work(async (generate, signal) => {
    const content = find('message').value.trim();
    if (!content) return 'write a message first';
    messages.push({ role: 'user', content });
    const asked = item(content);
    asked.className = 'user';
    const reply = item('');
    find('messages').append(asked, reply);
    find('message').value = '';
    const start = performance.now();
    let pieces = 0;
    const onText = (piece) => {
      pieces += 1;
      reply.textContent += piece;
    };
    try {
      await generate(messages, { max_new_tokens: 200, onText, signal });
    } finally {
      messages.push({ role: 'assistant', content: reply.textContent });
    }
    return `${((1000 * pieces) / (performance.now() - start)).toFixed(1)} pieces of text a second`;
  }),
);
find('message').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey) return;
  event.preventDefault();
  find('send').click();
});

const transcribe = (audio) =>
  work(async (hear, signal) => {
    const start = performance.now();
    const { text } = await hear(audio, { chunk_length_s: 30, signal });
    find('transcript').textContent = text.trim();
    return `${((performance.now() - start) / 1000).toFixed(1)} s`;
  });
find('audio').addEventListener('change', ({ target: { files } }) => files[0] && transcribe(files[0]));
let recorder;
find('record').addEventListener('click', async () => {
  if (recorder) return recorder.stop();
  failure.textContent = '';
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    recorder = new MediaRecorder(stream);
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    recorder.onstop = () => {
      for (const track of stream.getTracks()) track.stop();
      const audio = new Blob(parts, { type: recorder.mimeType });
      recorder = undefined;
      pressed('record', false, 'Record');
      void transcribe(audio);
    };
    recorder.start();
    pressed('record', true, 'Stop recording');
  } catch (error) {
    failure.textContent = `The microphone is not there: ${error.message}`;
  }
});

function pressed(id, on, text) {
  find(id).setAttribute('aria-pressed', String(on));
  find(id).textContent = text;
}

function draw(picture, width, height, found) {
  const canvas = find('drawn');
  Object.assign(canvas, { width, height });
  const context = canvas.getContext('2d');
  context.drawImage(picture, 0, 0, width, height);
  context.lineWidth = Math.max(2, width / 250);
  context.font = `${Math.max(12, width / 40)}px system-ui, sans-serif`;
  context.strokeStyle = context.fillStyle = '#e6194b';
  for (const { label, score, box: { xmin, ymin, xmax, ymax } } of found) {
    context.strokeRect(xmin, ymin, xmax - xmin, ymax - ymin);
    context.fillText(`${label} ${score.toFixed(2)}`, xmin + 4, Math.max(16, ymin - 4));
  }
  find('found').replaceChildren(...found.map(({ label, score }) => item(`${label}: ${score.toFixed(2)}`)));
}

find('picture').addEventListener('change', async ({ target: { files } }) => {
  if (!files[0]) return;
  const picture = await createImageBitmap(files[0]);
  await work(async (detect, signal) => draw(picture, picture.width, picture.height, await detect(files[0], { threshold: 0.5, signal })));
});
let camera;
find('camera').addEventListener('click', async () => {
  const video = find('video');
  if (camera) {
    for (const track of camera.getTracks()) track.stop();
    camera = undefined;
    pressed('camera', false, 'Start the camera');
    return;
  }
  failure.textContent = '';
  try {
    camera = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment', width: 640 } });
  } catch (error) {
    failure.textContent = `The camera is not there: ${error.message}`;
    return;
  }
  video.srcObject = camera;
  await video.play();
  pressed('camera', true, 'Stop the camera');
  await work(async (detect, signal) => {
    let frames = 0;
    const start = performance.now();
    while (camera && !signal.aborted) {
      const frame = await createImageBitmap(video);
      draw(frame, frame.width, frame.height, await detect(frame, { threshold: 0.5, signal }));
      frames += 1;
    }
    return `${((1000 * frames) / (performance.now() - start)).toFixed(1)} pictures a second`;
  });
});
