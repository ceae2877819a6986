// The demonstration (`web/demo`) in a headless Chromium: embeddings, a chat, a transcript of the microphone and detection on the camera,
// whose sound and pictures Chromium makes up; then a visit without a network. What the page says of an error fails it.
//
//   node demo.mjs PACKAGE MINILM GOLDENS [CHROMIUM] [--pictures FOLDER]
//
// PACKAGE has BERT, Llama, Whisper and YOLOS; GOLDENS is what `checkpoint.py` wrote of the last three. Their checkpoints are tiny and
// untrained: what they answer means nothing, that they answer is what is tried.

import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { browser } from './browsers.mjs';
import { serve } from './serve.mjs';

const given = process.argv.slice(2);
const at = given.indexOf('--pictures');
const [, pictures] = at < 0 ? [] : given.splice(at, 2);
const [packed, minilm, goldens, program = '/usr/bin/chromium'] = given;
const here = dirname(fileURLToPath(import.meta.url));
const mounts = [['/', join(here, '../../web/demo')], ['/package/', packed], ['/minilm/', minilm], ['/goldens/', goldens]];
const { server } = await serve(0, mounts, { isolated: true });
const base = `http://127.0.0.1:${server.address().port}`;
const models = { embed: 'minilm', chat: 'goldens/llama/text-generation', speech: 'goldens/whisper/automatic-speech-recognition', detect: 'goldens/yolos/object-detection' };
const url = `${base}/?${new URLSearchParams(Object.entries(models).map(([name, place]) => [name, `${base}/${place}`]))}`;
const opened = await browser(program, ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
const { page, context } = opened;
const problems = [];
page.on('pageerror', (error) => problems.push(error.message));
page.on('console', (message) => message.type() === 'error' && !/404/.test(message.text()) && problems.push(message.text()));

/** Waits until the page is done, and gives what it says. */
async function said(what) {
  await page.waitForFunction(() => document.getElementById('stop').disabled && (document.getElementById('status').textContent + document.getElementById('error').textContent) !== '', undefined, { timeout: 180_000 });
  const [status, error] = await Promise.all(['#status', '#error'].map((one) => page.textContent(one)));
  assert.equal(error, '', `${what}: ${error}`);
  if (pictures) await page.screenshot({ path: join(pictures, `${what}.png`) });
  return status;
}
const quiet = () => page.evaluate(() => ['status', 'error'].forEach((id) => (document.getElementById(id).textContent = '')));
try {
  await page.goto(url);
  await page.click('#compare');
  console.log(`embeddings: ${await said('embeddings')}`);
  const rows = await page.locator('#results li').allTextContents();
  assert.equal(rows.length, 5);
  assert.match(rows[0], /sourdough|dough/);

  // Tabs are reached by the keyboard.
  await page.focus('#tab-embed');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.getAttribute('#tab-chat', 'aria-selected'), 'true');
  await quiet();
  await page.fill('#message', 'Hello');
  await page.keyboard.press('Enter');
  console.log(`chat: ${await said('chat')}`);
  assert.equal(await page.locator('#messages li').count(), 2);
  assert.notEqual((await page.locator('#messages li').last().textContent()).length, 0);

  await page.click('#tab-speech');
  await quiet();
  await page.click('#record');
  await page.waitForSelector('#record[aria-pressed=true]');
  await page.waitForTimeout(2_000);
  await page.click('#record');
  await page.waitForFunction(() => document.getElementById('record').textContent === 'Record');
  await page.waitForFunction(() => !document.getElementById('stop').disabled || document.getElementById('error').textContent);
  console.log(`microphone: ${await said('microphone')}`);
  console.log(`  ${JSON.stringify((await page.textContent('#transcript')).slice(0, 60))}`);

  await page.click('#tab-detect');
  await quiet();
  await page.click('#camera');
  await page.waitForFunction(() => document.getElementById('drawn').width > 300 || document.getElementById('error').textContent, undefined, { timeout: 180_000 });
  await page.waitForTimeout(1_000);
  if (pictures) await page.screenshot({ path: join(pictures, 'running.png') });
  await page.click('#camera');
  console.log(`camera: ${await said('camera')}`);
  const colours = await page.evaluate(() => {
    const canvas = document.getElementById('drawn');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  assert(colours > 1, 'the picture of the camera is of one colour');

  // The width of a phone: nothing goes beyond it.
  await page.setViewportSize({ width: 360, height: 700 });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert(over <= 0, `the page is ${over} pixels wider than a phone`);

  // All that it takes is kept: once more, without a server.
  await page.waitForFunction(async () => (await navigator.serviceWorker.getRegistration())?.active?.state === 'activated');
  await page.reload();
  await page.click('#compare');
  await said('again');
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  await page.reload();
  await quiet();
  await page.click('#compare');
  console.log(`without a network: ${await said('offline')}`);
  assert.equal(await page.locator('#results li').count(), 5);
  const own = problems.filter((problem) => !/ERR_CONNECTION_REFUSED|ERR_INTERNET_DISCONNECTED/.test(problem));
  assert.deepEqual(own, []);
  console.log('no error in the console');
} finally {
  await opened.close();
  server.close();
}
