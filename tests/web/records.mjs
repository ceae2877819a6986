// What was seen of pages, as results/pages.json keeps it; `report.mjs` draws it.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

export const FILE = fileURLToPath(new URL('../../results/pages.json', import.meta.url));

/** All records, by their parts: `sizes`, `minilm`, `peers`, `many` and `goldens`. */
export async function records() {
  return readFile(FILE, 'utf8').then(JSON.parse, (error) => {
    if (error.code === 'ENOENT') return {};
    throw error;
  });
}

/** Keeps records in place of those of the same part that agree in `keys`, with the day and the machine. */
export async function keep(part, keys, entries) {
  const all = await records();
  const of = (entry) => JSON.stringify(keys.map((key) => entry[key]));
  const processors = cpus();
  const where = { machine: `${processors[0].model} with ${processors.length} cores`, date: new Date().toISOString().slice(0, 10) };
  const replaced = new Set(entries.map(of));
  const kept = [...(all[part] ?? []).filter((entry) => !replaced.has(of(entry))), ...entries.map((entry) => ({ ...entry, ...where }))];
  all[part] = kept.sort((a, b) => (of(a) < of(b) ? -1 : 1));
  const parts = Object.keys(all).sort().map((name) => `  ${JSON.stringify(name)}: [\n${all[name].map((entry) => `    ${JSON.stringify(entry)}`).join(',\n')}\n  ]`);
  const written = `${FILE}.${process.pid}`;
  await writeFile(written, `{\n${parts.join(',\n')}\n}\n`);
  await rename(written, FILE);
}
