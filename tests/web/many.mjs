// Loads and calls by the thousand in one page of a headless Chromium: each answers as the first one did, none hangs, and what the page's
// processes take after the last is within 5 % of what they took after the tenth.
//
//   node many.mjs PACKAGE CHECKPOINT [COUNT] [CHROMIUM] [--record]

import assert from 'node:assert/strict';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { taken } from './memory.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const [packed, checkpoint, count = '1000', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => one !== '--record');
const here = dirname(fileURLToPath(import.meta.url));
const { server } = await serve(0, [['/', here], ['/package/', packed], ['/model/', checkpoint]], { maxAge: 3600 });
const base = `http://127.0.0.1:${server.address().port}`;
const page = await browser(program, ['--js-flags=--expose-gc']);
const measured = [];
try {
  await page.goto(`${base}/page.html`);
  let first;
  const start = Date.now();
  for (let done = 0; done < Number(count); done++) {
    const answer = await page.evaluate(async (base) => {
      const { pipeline } = await import(`${base}/package/index.js`);
      const late = new Promise((_, reject) => setTimeout(() => reject(new Error('it hangs')), 120_000));
      const once = async () => {
        const embed = await pipeline('sentence-embedding', `${base}/model`);
        const vector = await embed('A warp thread.');
        await embed.dispose();
        return vector;
      };
      return Promise.race([once(), late]);
    }, base);
    first ??= answer;
    assert.deepEqual(answer, first);
    if ([10, 50].includes(done + 1) || (done + 1) % 100 === 0 || done + 1 === Number(count)) {
      await page.evaluate(async () => {
        for (let round = 0; round < 3; round++) {
          globalThis.gc?.();
          await new Promise((resolve) => setTimeout(resolve, 700));
        }
      });
      measured.push({ loads: done + 1, mb: Math.round(taken('--type=renderer') / 1e5) / 10, seconds: (Date.now() - start) / 1000 });
      console.log(JSON.stringify(measured.at(-1)));
    }
  }
} finally {
  await page.close();
  server.close();
}
const [tenth, last] = [measured[0].mb, measured.at(-1).mb];
if (process.argv.includes('--record')) await keep('many', ['browser', 'model'], [{ browser: page.name, model: checkpoint.split('/').slice(-2).join('/'), measured }]);
console.log(`${last <= tenth * 1.05 ? 'ok  ' : 'FAIL'} after ${count} loads ${last} MB, after ten ${tenth} MB`);
process.exit(last <= tenth * 1.05 ? 0 : 1);
