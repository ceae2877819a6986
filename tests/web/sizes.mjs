// How many bytes the WebAssembly of packages takes, as it is and as servers send it; fails where brotli leaves more than MOST of one.
//
//   node sizes.mjs NAME=PACKAGE... [--most=MOST] [--record]

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { keep } from './records.mjs';

const recording = process.argv.includes('--record');
const most = Number(process.argv.find((one) => one.startsWith('--most='))?.slice('--most='.length) ?? Infinity);
const named = process.argv.slice(2).filter((one) => !one.startsWith('--'));
const sent = (bytes) => {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes, { params }).length };
};
const entries = [];
for (const one of named) {
  const [name, folder] = one.split('=');
  const models = /^Models: (.+)\.$/m.exec(await readFile(join(folder, 'README.md'), 'utf8'))?.[1].split(', ').length;
  entries.push({ package: name, models, ...sent(await readFile(join(folder, 'wasm/weft_web_bg.wasm'))) });
  console.log(JSON.stringify(entries.at(-1)));
}
if (recording) await keep('sizes', ['package'], entries);
const large = entries.filter(({ brotli }) => brotli > most);
for (const { package: name, brotli } of large) console.error(`${name} takes ${brotli} bytes, and ${most} are allowed`);
process.exitCode = large.length > 0 ? 1 : 0;
