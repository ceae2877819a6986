// Task goldens in a page of a headless browser: each call's answer against the reference's, and texts as they are streamed.
//
//   node goldens.mjs PACKAGE FOLDER [wasm|webgpu|webnn] [BROWSER] [--dtype=fp32|fp16|q8|q4-mixed|q4|q3|q2] [--waiting] [--first] [--calls=N] [--answered] [--record]
//
// FOLDER is what `checkpoint.py` wrote: a folder for each model, in it one for each golden. `goldens.html` does the same in any browser. With `--first` only one of each task
// of a model, with `--calls=N` only its first N calls. With `--answered` a call is right that has an answer, whichever. With `--record` the results go to results/pages.json.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { keep } from './records.mjs';
import { serve } from './serve.mjs';

const waiting = process.argv.includes('--waiting');
const option = (name) => process.argv.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3);
const dtype = option('dtype') ?? 'fp32';
const most = Number(option('calls') ?? Infinity);
if (!(most >= 1)) throw new Error(`--calls=${option('calls')} is no number of calls: give one from 1 on`);
const [packed, folder, device = 'wasm', program = '/usr/bin/chromium'] = process.argv.slice(2).filter((one) => !one.startsWith('--'));

const here = dirname(fileURLToPath(import.meta.url));
const { server } = await serve(0, [['/', here], ['/package/', packed], ['/goldens/', folder]], { isolated: waiting });
const base = `http://127.0.0.1:${server.address().port}`;
const opened = async () => {
  const page = await browser(program);
  await page.goto(`${base}/page.html`);
  if (waiting) await page.evaluate(async () => delete WebAssembly.Suspending);
  return page;
};
let page = await opened();
let failed = 0;
let right = 0;
let ended = 0;
const models = new Map();
const tasks = new Set();
try {
  for (const place of JSON.parse(await readFile(join(folder, 'index.json'), 'utf8'))) {
    const golden = JSON.parse(await readFile(join(folder, place, 'task.json'), 'utf8'));
    const served = `${place.split('/')[0]} ${golden.task}`;
    if (process.argv.includes('--first') && tasks.has(served)) continue;
    tasks.add(served);
    golden.calls = golden.calls.slice(0, most);
    let answers;
    try {
      answers = await page.evaluate(
        async ([base, place, golden, device, dtype]) => {
          const { answered } = await import(`${base}/answers.js`);
          return answered(await import(`${base}/package/index.js`), `${base}/goldens/${place}`, golden, device, dtype);
        },
        [base, place, golden, device, dtype],
      );
    } catch (error) {
      // The browser ended the page, not a call: the others are asked in a new one.
      const calls = golden.calls.length;
      answers = { calls, errors: calls, wrong: [`the page ended: ${error.message.trim()}`] };
      await page.close().catch(() => {});
      page = await opened();
    }
    const { calls, errors, wrong } = answers;
    const [model] = place.split('/');
    const seen = models.get(model) ?? { browser: page.name, device, dtype, waiting, model, goldens: 0, calls: 0, right: 0, errors: 0, wrong: [] };
    models.set(model, seen);
    // A load that failed answers none of the calls.
    const fell = Math.min(calls, wrong.some((line) => !line.startsWith('call ')) ? calls : wrong.length);
    seen.goldens += 1;
    seen.calls += calls;
    seen.right += calls - fell;
    seen.errors += errors;
    ended += errors;
    // Of fewer bits, which choose otherwise, a few say what kind of difference it is.
    const kept = dtype === 'fp32' ? wrong : wrong.filter((line) => !/^q\d/.test(dtype) || line.includes('Error')).slice(0, 2);
    seen.wrong.push(...kept.map((line) => `${place}: ${line}`.slice(0, 300)));
    right += calls - fell;
    failed += fell;
    console.log(`${wrong.length === 0 ? 'ok  ' : 'FAIL'} ${place}: ${calls} calls`);
    for (const line of wrong) console.log(`     ${line}`);
  }
} finally {
  await page.close();
  server.close();
}
console.log(`${page.name}, ${device}, ${dtype}: ${right} calls answered as by the reference, ${failed} not`);
if (process.argv.includes('--record')) await keep('goldens', ['browser', 'device', 'dtype', 'waiting', 'model'], [...models.values()]);
process.exit((process.argv.includes('--answered') ? ended === 0 : failed === 0 && right > 0) ? 0 : 1);
