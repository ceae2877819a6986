// How many bytes the WebAssembly of packages takes, as it is and as servers send it.
//
//   node sizes.mjs NAME=PACKAGE... [--record]

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { keep } from './records.mjs';

const recording = process.argv.includes('--record');
const named = process.argv.slice(2).filter((one) => one !== '--record');
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
