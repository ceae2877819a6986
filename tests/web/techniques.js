// In the pages of `techniques.mjs`.

const base = new URL('.', import.meta.url).href;

export async function took(call) {
  const begun = performance.now();
  await call();
  return performance.now() - begun;
}

/** A pipeline of a folder that is served. */
export async function load(task, folder, options = {}) {
  const { pipeline } = await import(`${base}package/index.js`);
  return pipeline(task, `${base}${folder}`, { device: 'wasm', threads: 1, ...options });
}

/** So many tokens after a text of so many words. */
export function generate(run, words, tokens) {
  const text = Array.from({ length: words }, (_, index) => 'abcdefghij'[index % 10]).join('');
  return run(text, { max_new_tokens: tokens, min_new_tokens: tokens, do_sample: false, return_full_text: false });
}

/** The load of a decoder, a token behind a text of so many tokens, and what it writes. */
export async function generated(options, length) {
  let run;
  const loaded = await took(async () => (run = await load('text-generation', 'decoder', options)));
  const first = await took(() => generate(run, length, 1));
  let text;
  const more = await took(async () => ([{ generated_text: text }] = await generate(run, length, 9)));
  return { load: loaded, token: (more - first) / 8, text };
}

/** So many large decoders at once, in workers of their own, each of which answers. */
export async function workers(count) {
  const runs = [];
  const loaded = await took(async () => {
    for (let worker = 0; worker < count; worker++) runs.push(await load('text-generation', 'large', { dtype: 'fp32' }));
  });
  return { load: loaded, call: await took(() => Promise.all(runs.map((run) => generate(run, 16, 1)))) };
}

/** A minute of sound as text. */
export async function recognized(parameters) {
  const samples = Float32Array.from({ length: 60 * 16_000 }, (_, index) => 0.1 * Math.sin(index * (0.02 + 0.01 * Math.sin(index / 9_000))));
  const run = await load('automatic-speech-recognition', 'speech');
  await run(samples.subarray(0, 16_000));
  return { call: await took(() => run(samples, parameters)) };
}
