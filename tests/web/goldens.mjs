// Task goldens in a page of a headless browser: each call's answer against the reference's, and texts as they are streamed.
//
//   node goldens.mjs PACKAGE FOLDER [wasm|webgpu|webnn] [BROWSER] [--waiting]
//
// FOLDER is what `checkpoint.py` wrote: a folder for each model, in it one for each golden.

import { readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { serve } from './serve.mjs';

const waiting = process.argv.includes('--waiting');
const [packed, folder, device = 'wasm', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => one !== '--waiting');
const tolerance = device === 'wasm' ? 1e-4 : 1e-3;

/** Where an answer differs from the wanted one; nothing where it does not. */
function difference(got, want, place = 'answer') {
  if (typeof want === 'number') {
    const off = Math.abs(got - want);
    return off <= tolerance * Math.max(1, Math.abs(want)) ? undefined : `${place}: ${got} for ${want}`;
  }
  if (want === null || typeof want !== 'object') return got === want ? undefined : `${place}: ${got} for ${want}`;
  const keys = new Set([...Object.keys(want), ...Object.keys(got ?? {})]);
  for (const key of keys) {
    const differs = difference(got?.[key], want[key], `${place}.${key}`);
    if (differs) return differs;
  }
  return undefined;
}

const here = dirname(fileURLToPath(import.meta.url));
const { server } = await serve(0, [['/', here], ['/package/', packed], ['/goldens/', folder]], { isolated: waiting });
const base = `http://127.0.0.1:${server.address().port}`;
const page = await browser(program);
let failed = 0;
let answered = 0;
try {
  await page.goto(`${base}/page.html`);
  if (waiting) await page.evaluate(async () => delete WebAssembly.Suspending);
  for (const model of (await readdir(folder)).sort()) {
    for (const golden of (await readdir(join(folder, model))).sort()) {
      const { task, calls } = JSON.parse(await readFile(join(folder, model, golden, 'task.json'), 'utf8'));
      const answers = await page.evaluate(async ([base, place, device, task, calls]) => {
        const { pipeline } = await import(`${base}/package/index.js`);
        const words = (error) => ({ error: `${error.name}: ${error.message}` });
        try {
          const run = await pipeline(task, `${base}/goldens/${place}`, { device });
          const answers = [];
          for (const { inputs, parameters } of calls) {
            const answer = await run(inputs, parameters ?? {}).catch(words);
            let streamed;
            if (task === 'text-generation' && typeof inputs === 'string' && !parameters.num_beams) {
              streamed = '';
              await run(inputs, { ...parameters, onText: (text) => (streamed += text) }).catch(words);
            }
            answers.push({ answer, streamed });
          }
          await run.dispose();
          return answers;
        } catch (error) {
          return calls.map(() => ({ answer: words(error) }));
        }
      }, [base, `${model}/${golden}`, device, task, calls]);
      const wrong = [];
      answers.forEach(({ answer, streamed }, index) => {
        const { inputs, output } = calls[index];
        const problem = answer?.error ?? difference(answer, output);
        if (problem) wrong.push(`call ${index}: ${problem}`);
        const whole = output?.[0]?.generated_text;
        if (streamed !== undefined && typeof whole === 'string' && whole !== streamed && whole !== inputs + streamed) {
          wrong.push(`call ${index}: ${JSON.stringify(streamed)} was streamed of ${JSON.stringify(whole)}`);
        }
      });
      answered += calls.length - wrong.length;
      failed += wrong.length;
      console.log(`${wrong.length === 0 ? 'ok  ' : 'FAIL'} ${model}/${golden}: ${calls.length} calls`);
      for (const one of wrong) console.log(`     ${one}`);
    }
  }
} finally {
  await page.close();
  server.close();
}
console.log(`${answered} calls answered as the reference does on ${device} in ${page.name}, ${failed} not`);
process.exit(failed === 0 ? 0 : 1);
