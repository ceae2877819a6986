// What was seen of pages, as results/pages.json keeps it; `report.mjs` draws it.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

export const FILE = fileURLToPath(new URL('../../results/pages.json', import.meta.url));

/** What the records of a run share, and what each has of its own: thousands of goldens are a line each, beside what they share. */
const SHARED = ['browser', 'device', 'dtype', 'waiting', 'machine', 'date'];
const OWN = ['model', 'goldens', 'calls', 'right', 'errors', 'wrong'];

const picked = (keys, entry) => Object.fromEntries(keys.map((key) => [key, entry[key]]));

/** Goldens as they are in the file. */
function grouped(entries) {
  const groups = new Map();
  for (const entry of entries) {
    const shared = picked(SHARED, entry);
    const key = JSON.stringify(shared);
    if (!groups.has(key)) groups.set(key, { ...shared, models: [] });
    groups.get(key).models.push(OWN.map((name) => entry[name]));
  }
  return [...groups.values()];
}

/** The same as records. */
const apart = (groups) =>
  groups.flatMap(({ models, ...shared }) => models.map((own) => ({ ...shared, ...Object.fromEntries(OWN.map((name, at) => [name, own[at]])) })));

/** All records, by their parts: `sizes`, `minilm`, `peers`, `many` and `goldens`. */
export async function records() {
  const kept = await readFile(FILE, 'utf8').then(JSON.parse, (error) => {
    if (error.code === 'ENOENT') return {};
    throw error;
  });
  return kept.goldens ? { ...kept, goldens: apart(kept.goldens) } : kept;
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
  await write(all);
}

/** Writes all records. */
async function write(all) {
  const lines = (name) => (name === 'goldens' ? grouped(all.goldens).map(group) : all[name].map((entry) => JSON.stringify(entry)));
  const group = ({ models, ...shared }) => `${JSON.stringify(shared).slice(0, -1)},"models":[\n      ${models.map((own) => JSON.stringify(own)).join(',\n      ')}\n    ]}`;
  const parts = Object.keys(all).sort().map((name) => `  ${JSON.stringify(name)}: [\n    ${lines(name).join(',\n    ')}\n  ]`);
  const written = `${FILE}.${process.pid}`;
  await writeFile(written, `{\n${parts.join(',\n')}\n}\n`);
  await rename(written, FILE);
}
