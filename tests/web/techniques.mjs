// What techniques for large models in pages bring: each measured with it and without, in pages of their own in one browser, on `wasm`
// with one thread, after a first visit that is not counted.
//
//   node techniques.mjs PACKAGE DECODER SPEECH EMBEDDER LARGE [BROWSER] [--rounds=2] [--record] [--only=NAME]
//
// PACKAGE has Llama's text generation, Wav2Vec2's speech recognition and BERT's sentence embeddings; DECODER, SPEECH and EMBEDDER are folders of
// checkpoints of theirs; LARGE is a decoder that takes most of the 4 GB that a worker's WebAssembly has.

import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { peak } from './memory.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const rounds = Number(process.argv.find((one) => one.startsWith('--rounds='))?.slice('--rounds='.length) ?? 2);
const only = process.argv.find((one) => one.startsWith('--only='))?.slice('--only='.length);
const [packed, decoder, speech, embedder, large, program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const here = dirname(fileURLToPath(import.meta.url));
const mounts = [['/', here], ['/package/', packed], ['/decoder/', decoder], ['/speech/', speech], ['/embedder/', embedder], ['/large/', large]];
const { server } = await serve(0, mounts, { maxAge: 3600 });
const base = `http://127.0.0.1:${server.address().port}`;

/** Of each technique two ways, by what they are called: code for the page, which gives milliseconds by what they were of. */
const TECHNIQUES = {
  'pipelines loaded side by side': {
    without: async (base) => {
      const { took, load } = await import(`${base}/techniques.js`);
      return { load: await took(async () => [await load('sentence-embedding', 'embedder'), await load('text-generation', 'decoder', { dtype: 'q4' })]) };
    },
    with: async (base) => {
      const { took, load } = await import(`${base}/techniques.js`);
      return { load: await took(() => Promise.all([load('sentence-embedding', 'embedder'), load('text-generation', 'decoder', { dtype: 'q4' })])) };
    },
  },
  'precision by module: the head in 8 bits, not in 4': {
    without: async (base) => (await import(`${base}/techniques.js`)).generated({ dtype: { '*': 'q4', lm_head: 'q4' } }, 16),
    with: async (base) => (await import(`${base}/techniques.js`)).generated({ dtype: { '*': 'q4', lm_head: 'q8' } }, 16),
  },
  'cached keys and values in 8 bits, after 256 tokens': {
    without: async (base) => (await import(`${base}/techniques.js`)).generated({ dtype: 'q4' }, 256),
    with: async (base) => (await import(`${base}/techniques.js`)).generated({ dtype: 'q4', kv_cache_dtype: 'q8' }, 256),
  },
  'a pipeline given up for another and loaded again': {
    without: async (base) => {
      const { took, load, generate } = await import(`${base}/techniques.js`);
      const run = await load('text-generation', 'decoder', { dtype: 'q4' });
      await load('sentence-embedding', 'embedder');
      await generate(run, 1, 1);
      return { again: await took(() => generate(run, 1, 1)) };
    },
    with: async (base) => {
      const { took, load, generate } = await import(`${base}/techniques.js`);
      const run = await load('text-generation', 'decoder', { dtype: 'q4' });
      await generate(run, 1, 1);
      await run.dispose();
      const embed = await load('sentence-embedding', 'embedder');
      await embed.dispose();
      return { again: await took(async () => generate(await load('text-generation', 'decoder', { dtype: 'q4' }), 1, 1)) };
    },
  },
  'two workers, each with a model': {
    without: async (base) => (await import(`${base}/techniques.js`)).workers(1),
    with: async (base) => (await import(`${base}/techniques.js`)).workers(2),
  },
  'audio of 60 seconds in chunks of 10': {
    without: async (base) => (await import(`${base}/techniques.js`)).recognized({}),
    with: async (base) => (await import(`${base}/techniques.js`)).recognized({ chunk_length_s: 10 }),
  },
};

const page = await browser(program);
const entries = [];
try {
  for (const [technique, ways] of Object.entries(TECHNIQUES)) {
    if (only && !technique.includes(only)) continue;
    const entry = { technique, browser: page.name, models: [decoder, speech, embedder, large].map((folder) => basename(folder)) };
    // The first time fills the cache.
    for (const way of ['without', ...Array.from({ length: rounds }, () => ['without', 'with']).flat()]) {
      await page.goto('about:blank');
      await page.goto(`${base}/page.html`);
      const watch = peak('--type=renderer');
      let found;
      try {
        found = await page.evaluate(ways[way], base);
      } catch (error) {
        found = { error: error.message.split('\n')[0] };
      }
      found.peak_mb = watch.stop() / 1e6;
      console.error(technique, way, JSON.stringify(found));
      entry[way] = [...(entry[way] ?? []), found].slice(-rounds);
    }
    entries.push(entry);
  }
} finally {
  await page.close();
  server.close();
}
console.log(JSON.stringify(entries, null, 1));
if (process.argv.includes('--record')) await keep('techniques', ['technique', 'browser'], entries);
