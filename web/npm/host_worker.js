// Holds files and models for a worker that waits: a browser without JavaScript Promise Integration cannot let WebAssembly wait for a
// promise, but a worker can stand still (`Atomics.wait`) until another one has the answer.

import { Host } from './host.js';
import { ANSWERED, BYTES, TEXT } from './waiting.js';

onmessage = ({ data: { settings, port, state } }) => {
  const host = new Host(settings, (progress) => postMessage({ event: 'progress', progress }));
  let answer = new Uint8Array();
  const answered = () => {
    Atomics.store(state, ANSWERED, 1);
    Atomics.notify(state, ANSWERED);
  };
  port.onmessage = async ({ data: { name, parameters, room, silent } }) => {
    if (room) {
      new Uint8Array(room).set(answer);
      answer = new Uint8Array();
      return void answered();
    }
    let told;
    let bytes = new Uint8Array();
    try {
      let value = await host[name](...parameters);
      if (Array.isArray(value)) [value, bytes] = value;
      if (value instanceof Uint8Array) [value, bytes] = [null, value];
      told = { value: value ?? null };
    } catch (error) {
      told = { error: String(error?.message ?? error) };
    }
    if (silent) return;
    const text = new TextEncoder().encode(JSON.stringify(told));
    answer = new Uint8Array(text.length + bytes.length);
    answer.set(text);
    answer.set(bytes, text.length);
    Atomics.store(state, TEXT, text.length);
    Atomics.store(state, BYTES, bytes.length);
    answered();
  };
  postMessage({ event: 'ready' });
};
