// Task goldens in a page: each call's answer by the package, and where it differs from the reference's.

/** Where an answer differs from the wanted one; nothing where it does not. */
export function difference(got, want, tolerance, place = 'answer') {
  if (typeof want === 'number') {
    const off = Math.abs(got - want);
    return off <= tolerance * Math.max(1, Math.abs(want)) ? undefined : `${place}: ${got} for ${want}`;
  }
  if (want === null || typeof want !== 'object') return got === want ? undefined : `${place}: ${got} for ${want}`;
  const keys = new Set([...Object.keys(want), ...Object.keys(got ?? {})]);
  for (const key of keys) {
    const differs = difference(got?.[key], want[key], tolerance, `${place}.${key}`);
    if (differs) return differs;
  }
  return undefined;
}

/** Names of files as URLs of the golden's folder. */
function placed(value, folder) {
  if (typeof value === 'string') return /\.(png|jpg|jpeg|webp|gif|wav|flac|mp3|ogg)$/.test(value) ? `${folder}/${value}` : value;
  if (Array.isArray(value)) return value.map((one) => placed(one, folder));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, placed(one, folder)]));
}

/** How far numbers may lie from the reference's, which computes in single precision. */
const TOLERANCE = { fp32: 1e-4, fp16: 2e-2, bf16: 1e-1, q8: 1e-1, q4: 5e-1, 'q4-mixed': 5e-1, q3: 1, q2: 1 };

/** Answers a golden's calls: what is wrong with them, the calls and those that an error ended, the times, and what it was loaded on. */
export async function answered({ pipeline }, folder, { task, calls }, device, dtype = 'fp32') {
  const tolerance = Math.max(TOLERANCE[dtype], device === 'wasm' ? 0 : 1e-3);
  const words = (error) => `${error.name}: ${error.message}`;
  const record = { task, device, dtype, calls: calls.length, errors: 0, wrong: [] };
  const start = performance.now();
  let run;
  try {
    run = await pipeline(task, folder, { device, dtype });
  } catch (error) {
    return { ...record, errors: calls.length, wrong: [words(error)] };
  }
  record.load_ms = performance.now() - start;
  record.placement = run.about.placement;
  record.explanation = run.about.explanation;
  for (const [index, { inputs, parameters, output }] of calls.entries()) {
    try {
      const answer = await run(placed(inputs, folder), parameters ?? {});
      // Chats are answered with what was given, names of files among it.
      const problem = difference(answer, placed(output, folder), tolerance);
      if (problem) record.wrong.push(`call ${index}: ${problem}`);
      if (task !== 'text-generation' || typeof inputs !== 'string' || parameters.num_beams) continue;
      let streamed = '';
      await run(inputs, { ...parameters, onText: (text) => (streamed += text) });
      const whole = output?.[0]?.generated_text;
      if (typeof whole === 'string' && whole !== streamed && whole !== inputs + streamed) {
        record.wrong.push(`call ${index}: ${JSON.stringify(streamed)} was streamed of ${JSON.stringify(whole)}`);
      }
    } catch (error) {
      record.errors += 1;
      record.wrong.push(`call ${index}: ${words(error)}`);
    }
  }
  record.ms = performance.now() - start;
  await run.dispose();
  return record;
}
