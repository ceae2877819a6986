// Draws the tables of docs/browser.md and docs/browser-templates.md that lie between marks from results/pages.json; with `--check` says whether they are so.
//
//   node report.mjs [--check]

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { records } from './records.mjs';

const DOCS = ['browser.md', 'browser-templates.md'].map((name) => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)));
const kb = (bytes) => Math.round(bytes / 1e3).toLocaleString('en');
const seconds = (ms) => (ms === null ? '' : (ms / 1e3).toPrecision(2));
const table = (head, rows) => [head, head.map((_, index) => (index === 0 ? '---' : '--:')), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const where = (entries) => {
  const days = entries.map(({ date }) => date).sort();
  const span = days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`;
  return `${[...new Set(entries.map(({ machine }) => machine))].join(', ')}, ${span}.`;
};
const device = ({ device, dtype = 'fp32', waiting }) => `\`${device}\`${dtype === 'fp32' ? '' : `, ${dtype}`}${waiting ? ', waiting' : ''}`;

/** One of each kind that the first designs named. */
const KEY = ['bert', 't5', 'llama', 'qwen2', 'clip', 'vit', 'detr', 'clap', 'whisper', 'wav2vec2', 'llava', 'llava_next', 'xclip'];
const placed = (one) => `${one.browser}, ${device(one)}`;
const TYPES = ['fp32', 'fp16', 'bf16', 'q8', 'q4-mixed', 'q4', 'q3', 'q2'];
const ROUNDED = TYPES.slice(3);
const ordered = (entries) => {
  const order = ({ browser, device, waiting, dtype }) => `${browser} ${device} ${waiting} ${TYPES.indexOf(dtype)}`;
  const places = new Map(entries.map((one) => [placed(one), order(one)]));
  return [...places].sort(([, a], [, b]) => (a < b ? -1 : 1)).map(([place]) => place);
};

/** What the first designs declared of each browser: 16, 8, 4 and 2 bits, and mixed ones. */
const DECLARED = [
  ['Chrome', 'Chromium', 'webnn', ['full', 'full', 'limited', 'none', 'full']],
  ['Edge', undefined, 'webnn', ['full', 'full', 'full', 'none', 'full']],
  ['Firefox', 'firefox', 'webnn', ['none', 'none', 'none', 'none', 'none']],
  ['Safari', 'MiniBrowser', 'webnn', ['partial', 'limited', 'none', 'none', 'limited']],
  ['Chrome', 'Chromium', 'webgpu', ['full', 'full', 'full', 'full', 'full']],
  ['Edge', undefined, 'webgpu', ['full', 'full', 'full', 'full', 'full']],
  ['Firefox', 'firefox', 'webgpu', ['full', 'full', 'full', 'full', 'full']],
  ['Safari', 'MiniBrowser', 'webgpu', ['partial', 'partial', 'limited', 'none', 'limited']],
  ['Chrome', 'Chromium', 'wasm', []],
  ['Firefox', 'firefox', 'wasm', []],
  ['Safari', 'MiniBrowser', 'wasm', []],
];
const DECLARED_TYPES = ['fp16', 'q8', 'q4', 'q2', 'q4-mixed'];

/** A browser and device, whatever the type of weights. */
const page = (one) => placed({ ...one, dtype: 'fp32' });
const typesOf = (entries) => TYPES.filter((dtype) => entries.some((one) => one.dtype === dtype));

/** Those of the models beside the thirteen that were asked in every type of weights: one of each template. */
const ofTemplates = (entries) => {
  const asked = new Set(entries.filter(({ dtype }) => dtype === 'q4').map(({ model }) => model));
  return entries.filter(({ model }) => !KEY.includes(model) && asked.has(model));
};

const drawn = {
  sizes: (entries) =>
    table(['WebAssembly, kB', 'models', 'raw', 'gzip', 'brotli'], [...entries].sort((a, b) => a.raw - b.raw).map((one) => [one.package, one.models ?? '', kb(one.raw), kb(one.gzip), kb(one.brotli)])),
  minilm: (entries) =>
    `${table(
      ['browser', 'device', 'difference', 'first load, s', 'load from the cache, s', 'first result from the cache, s', 'further calls, ms'],
      entries.map((one) => [one.browser, device(one), one.off.toExponential(1), seconds(one.load_ms), seconds(one.warm_ms), seconds(one.first_result_ms), one.second_ms.toFixed(0)]),
    )}\n\n${where(entries)}`,
  peers: (entries) =>
    entries
      .map(({ browser, peer, model, dtype, what, rounds, ratio, range, medians, off }) => {
        const rows = { load: 'load, ms', result: 'first result, ms', call: `${what}, ms`, peak_mb: 'peak memory, MB' };
        const of = (what) => [rows[what], medians.weft[what].toFixed(0), medians.transformers[what].toFixed(0), ratio[what].toFixed(2), range[what].map((one) => one.toFixed(2)).join(' to ')];
        const lines = table([`${model}, ${dtype}, ${browser}, ${rounds} rounds`, 'Weft', peer, 'ratio', 'of single rounds'], Object.keys(rows).map(of));
        const same = off === 0 ? 'The texts are the same.' : `Of the texts the last ${(100 * off).toFixed(0)} % differ.`;
        return `${lines}\n\n${what.includes('token') ? same : `The vectors differ by ${off.toExponential(1)} at most.`}`;
      })
      .join('\n\n') + ` ${where(entries)}`,
  many: (entries) =>
    `${table(['browser', 'checkpoint', 'loads', 'memory, MB'], entries.flatMap(({ browser, model, measured }) => measured.map(({ loads, mb }) => [browser, model, loads, mb])))}\n\n${where(entries)}`,
  goldens: (entries) => {
    const key = entries.filter(({ model }) => KEY.includes(model));
    const others = entries.filter(({ model, dtype }) => !KEY.includes(model) && dtype === 'fp32');
    const rows = ordered(key).map((place) => {
      const cell = (model) => {
        const found = key.find((one) => one.model === model && placed(one) === place);
        return found ? `${found.right}/${found.calls}${found.errors > 0 ? ` (${found.errors} ended)` : ''}` : '';
      };
      return [place, ...KEY.map(cell)];
    });
    const whole = ordered(others).map((place) => {
      const here = others.filter((one) => placed(one) === place);
      const sum = (what) => here.reduce((sum, one) => sum + one[what], 0);
      const names = here.filter(({ right, calls }) => right === calls).map(({ model }) => model);
      const rest = here.filter(({ right, calls }) => right < calls).map((one) => [one.model, `${one.right}/${one.calls}`, one.errors]);
      const failed = rest.length > 0 ? `\n\n${table(['not all as by the reference', 'calls that are', 'ended by an error'], rest)}` : '';
      const text = `Other models, ${place}: ${here.length}, of whose ${sum('calls')} calls ${sum('right')} are answered as by the reference; all calls of ${names.join(', ')}.`;
      return `${text}${failed}`;
    });
    // The first line of each golden says what kind of difference it is. Rounded weights choose otherwise.
    const differences = new Map();
    const told = entries.filter((one) => key.includes(one) || others.includes(one));
    for (const one of told.filter(({ dtype, errors }) => !ROUNDED.includes(dtype) || errors > 0)) {
      const seen = new Set();
      for (const line of one.wrong) {
        const [golden] = line.split(': ');
        if (seen.has(golden) || (ROUNDED.includes(one.dtype) && !/Error/.test(line))) continue;
        seen.add(golden);
        const problem = line.slice(golden.length + 2).replaceAll('`', "'").replaceAll('\n', ' ');
        const key = `${placed(one)}\n${problem}`;
        differences.set(key, [...(differences.get(key) ?? []), golden]);
      }
    }
    // What all goldens have alike stands once.
    const wrong = [...differences].map(([key, goldens]) => {
      const [place, problem] = key.split('\n');
      const others = goldens.length > 1 ? `and ${goldens.length - 1} more: ` : '';
      return `- ${place}: ${others ? `\`${goldens[0]}\` ${others}\`` : `\`${goldens[0]}: `}${problem}\``;
    });
    const failed = wrong.length > 0 ? `\n\nWhat is not as by the reference:\n\n${wrong.join('\n')}` : '';
    return `${table(['', ...KEY], rows)}\n\n${whole.join('\n\n')}${failed}\n\n${where(told)}`;
  },
  rounded: (entries) => {
    const others = ofTemplates(entries);
    const rows = ordered(others.filter(({ dtype }) => dtype === 'fp32')).map((place) => [
      place,
      ...typesOf(others).map((dtype) => {
        const here = others.filter((one) => one.dtype === dtype && page(one) === place);
        if (here.length === 0) return '';
        const sum = (what) => here.reduce((sum, one) => sum + one[what], 0);
        return `${here.filter(({ errors }) => errors === 0).length}/${here.length}; ${sum('right')}/${sum('calls')}`;
      }),
    ]);
    return `${table(['', ...typesOf(others)], rows)}\n\n${where(others)}`;
  },
  templates: (entries) => {
    const others = ofTemplates(entries);
    const models = [...new Set(others.map(({ model }) => model))].sort();
    return ordered(others.filter(({ dtype }) => dtype === 'fp32'))
      .map((place) => {
        const here = others.filter((one) => page(one) === place);
        const cell = (model, dtype) => {
          const found = here.find((one) => one.model === model && one.dtype === dtype);
          return found ? `${found.right}/${found.calls}${found.errors > 0 ? ` (${found.errors} ended)` : ''}` : '';
        };
        // What ended, once of each kind, by the type of weights.
        const problems = new Map();
        for (const { model, dtype, wrong } of here.filter(({ errors }) => errors > 0)) {
          const line = wrong.find((line) => /Error|the page ended/.test(line)) ?? '';
          const problem = line.slice(line.indexOf(': ') + 2).replace(/^call \d+: /, '').replace(/Name:'[^']*' /, '').replaceAll('`', "'").replaceAll('\n', ' ').replace(/^(.{140}\S*)\s.*$/, '$1 …');
          problems.set(problem, [...(problems.get(problem) ?? []), `${model}, ${dtype}`]);
        }
        const ended = [...problems].map(([problem, seen]) => `- ${seen.length > 3 ? `${seen.slice(0, 3).join('; ')} and ${seen.length - 3} more` : seen.join('; ')}: \`${problem}\``);
        const text = ended.length > 0 ? `\n\nWhat ended:\n\n${ended.join('\n')}` : '';
        return `## ${place}\n\n${table(['', ...typesOf(others)], models.map((model) => [model, ...typesOf(others).map((dtype) => cell(model, dtype))]))}${text}\n\n${where(here)}`;
      })
      .join('\n\n');
  },
  declared: (entries) => {
    const observed = (browser, device, dtype) => {
      const found = entries.filter((one) => KEY.includes(one.model) && browser && one.browser.startsWith(browser) && one.device === device && one.dtype === dtype);
      return found.length === 0 ? '-' : `${found.filter(({ errors }) => errors === 0).length} of ${found.length}`;
    };
    const cell = (declared, browser, device, dtype) => [declared, observed(browser, device, dtype)].filter(Boolean).join('; ');
    const rows = DECLARED.map(([name, browser, device, words]) => [
      `${name}, \`${device}\``,
      observed(browser, device, 'fp32'),
      ...DECLARED_TYPES.map((dtype, index) => cell(words[index], browser, device, dtype)),
    ]);
    return table(['', 'fp32', ...DECLARED_TYPES], rows);
  },
  techniques: (entries) => {
    const middle = (found, what) => found.map((one) => one[what]).sort((a, b) => a - b)[found.length >> 1];
    const of = { load: 'load', token: 'a token', again: 'the next answer', call: 'a call' };
    const rows = entries.flatMap(({ technique, without, with: with_ }) => {
      const ended = [...without, ...with_].find(({ error }) => error);
      if (ended) return [[technique, ended.error, '', '', '']];
      const whats = Object.keys(of).filter((what) => what in without[0]);
      return [...whats, 'peak_mb'].map((what, index) => {
        const [a, b] = [middle(without, what), middle(with_, what)];
        const shown = (number) => (what === 'peak_mb' ? `${number.toFixed(0)} MB` : `${seconds(number)} s`);
        return [index === 0 ? technique : '', what === 'peak_mb' ? 'peak memory' : of[what], shown(a), shown(b), (b / a).toFixed(2)];
      });
    });
    return `${table(['technique', 'of', 'without', 'with', 'ratio'], rows)}\n\n${where(entries)}`;
  },
};

const all = await records();
const of = (name) => all[['declared', 'rounded', 'templates'].includes(name) ? 'goldens' : name];
const left = new Set(Object.keys(drawn));
const stale = [];
for (const file of DOCS) {
  const before = await readFile(file, 'utf8');
  let after = before;
  for (const [name, draw] of Object.entries(drawn)) {
    const marks = new RegExp(`(<!-- ${name}: by tests/web/report.mjs -->\n)[\\s\\S]*?(<!-- end -->)`);
    if (!marks.test(after)) continue;
    left.delete(name);
    if (of(name)) after = after.replace(marks, (_, start, end) => `${start}\n${draw(of(name))}\n\n${end}`);
  }
  if (after === before) continue;
  stale.push(file);
  if (!process.argv.includes('--check')) await writeFile(file, after);
}
if (left.size > 0) throw new Error(`no document has marks of ${[...left].join(', ')}`);
if (process.argv.includes('--check') && stale.length > 0) {
  throw new Error(`${stale.join(', ')}: not what results/pages.json says: run \`node tests/web/report.mjs\``);
}
