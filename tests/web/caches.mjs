// Texts whose keys and values are cached in floating point and in 8 and 4 bits, over several capacities of the cache: on each device those
// that wasm writes.
//
//   node caches.mjs PACKAGE CHECKPOINT [BROWSER] [--devices=webgpu]
//
// CHECKPOINT is a decoder's folder, as `checkpoint.py` writes it.

import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { serve } from './serve.mjs';

const devices = process.argv.find((one) => one.startsWith('--devices='))?.slice('--devices='.length) ?? 'webgpu';
const [packed, checkpoint, program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const { server } = await serve(0, [['/', dirname(fileURLToPath(import.meta.url))], ['/package/', packed], ['/model/', checkpoint]]);
const base = `http://127.0.0.1:${server.address().port}`;
const page = await browser(program);
const texts = {};
let differ = 0;
try {
  for (const kv_cache_dtype of ['fp32', 'q8', 'q4']) {
    for (const device of ['wasm', ...devices.split(',')]) {
      await page.goto('about:blank');
      await page.goto(`${base}/page.html`);
      const { text, time } = await page.evaluate(
        async ([base, options]) => {
          const { pipeline } = await import(`${base}/package/index.js`);
          const run = await pipeline('text-generation', `${base}/model`, { dtype: 'fp32', ...options });
          const tokens = { max_new_tokens: 100, min_new_tokens: 100, do_sample: false, return_full_text: false };
          const begun = performance.now();
          const [{ generated_text: text }] = await run('a b c d e f g h i j k l m n o p q r s t u v w x y z', tokens);
          await run.dispose();
          return { text, time: performance.now() - begun };
        },
        [base, { device, kv_cache_dtype }],
      );
      texts[kv_cache_dtype] ??= text;
      const same = text === texts[kv_cache_dtype];
      differ += same ? 0 : 1;
      console.log(`${same ? 'ok  ' : 'FAIL'} ${device}, ${kv_cache_dtype}: ${(time / 1000).toFixed(1)} s${same ? '' : `\n     ${text}\n     not ${texts[kv_cache_dtype]}`}`);
    }
  }
} finally {
  await page.close();
  server.close();
}
process.exit(differ === 0 ? 0 : 1);
