// What the processes of a browser take, by Linux's proportional set size.

import { readFileSync, readdirSync } from 'node:fs';

/** Bytes of all processes that this one started, those that they started included; of a kind where a word of the command line is given. */
export function taken(word = '') {
  const parents = new Map();
  for (const name of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It ended meanwhile.
    }
  }
  const ours = (id) => id === process.pid || (parents.has(id) && parents.get(id) !== 0 && ours(parents.get(id)));
  let sum = 0;
  for (const id of parents.keys()) {
    if (id === process.pid || !ours(id)) continue;
    try {
      if (!readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(word)) continue;
      sum += 1024 * Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // It ended meanwhile.
    }
  }
  return sum;
}

/** Watches until `stop`, which gives the most that was taken. */
export function peak(word) {
  let most = taken(word);
  const timer = setInterval(() => (most = Math.max(most, taken(word))), 100);
  return { stop: () => (clearInterval(timer), Math.max(most, taken(word))) };
}
