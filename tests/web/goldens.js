// The page of `goldens.html`: goldens one after the other, a row for each, and the records as a file.

import { answered } from './answers.js';

const find = (id) => document.getElementById(id);
const records = [];

/** What runs here, as far as the browser tells. */
async function machine() {
  const { vendor, architecture, description } = (await navigator.gpu?.requestAdapter())?.info ?? {};
  const gpu = [vendor, architecture, description].filter(Boolean).join(' ');
  return { browser: navigator.userAgent, processors: navigator.hardwareConcurrency, gpu };
}

find('run').addEventListener('click', async () => {
  find('run').disabled = true;
  const device = find('device').value;
  const dtype = find('dtype').value;
  try {
    const weft = await import('./package/index.js');
    const where = await machine();
    for (const place of await (await fetch('./goldens/index.json')).json()) {
      find('status').textContent = `${place} …`;
      const folder = new URL(`./goldens/${place}`, location.href).href;
      const golden = await (await fetch(`${folder}/task.json`)).json();
      const record = { golden: place, ...(await answered(weft, folder, golden, device, dtype)), ...where, time: new Date().toISOString() };
      records.push(record);
      const row = document.createElement('tr');
      const right = record.wrong.length === 0 ? 'as the reference' : record.wrong.join('\n');
      row.append(...[place, `${record.calls} on ${device}, ${dtype}`, right].map((text) => Object.assign(document.createElement('td'), { textContent: text })));
      find('rows').append(row);
    }
    const right = records.filter(({ wrong }) => wrong.length === 0).length;
    find('status').textContent = `${right} of ${records.length} goldens as the reference`;
  } catch (error) {
    find('status').textContent = error.message;
  } finally {
    find('run').disabled = false;
    find('save').disabled = records.length === 0;
  }
});

find('save').addEventListener('click', () => {
  const lines = records.map((record) => `${JSON.stringify(record)}\n`);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/jsonl' }));
  link.download = 'browser.jsonl';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
});
