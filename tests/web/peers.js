// In the page of `peers.mjs`: what each side loads, and how long its answers take.

const TEXTS = ['A warp thread.', 'A weft thread.', 'The shuttle carries the weft through the shed.', 'Rust is a language.', 'Bread.', 'A river at night.'];

const packages = {
  weft: async (base, task, dtype) => {
    const { pipeline } = await import(`${base}/package/index.js`);
    return pipeline(task, `${base}/model`, { device: 'wasm', dtype });
  },
  transformers: async (base, task, dtype) => {
    const { pipeline, env } = await import(`${base}/transformers/transformers.min.js`);
    env.allowLocalModels = false;
    env.remoteHost = `${base}/`;
    env.remotePathTemplate = 'converted/{model}/';
    Object.assign(env.backends.onnx.wasm, { wasmPaths: `${base}/modules/onnxruntime-web/dist/`, numThreads: 1, proxy: false });
    return pipeline(task === 'sentence-embedding' ? 'feature-extraction' : task, 'model', { device: 'wasm', dtype });
  },
};

async function took(call) {
  const begun = performance.now();
  const answer = await call();
  return [performance.now() - begun, answer];
}

/** Vectors of six sentences; a call is a further batch, the median of eleven. */
async function embedded(embed, name) {
  const call = async () => (name === 'weft' ? embed(TEXTS) : (await embed(TEXTS, { pooling: 'mean', normalize: true })).tolist());
  const [first, answer] = await took(call);
  const times = [];
  for (let round = 0; round < 11; round++) times.push((await took(call))[0]);
  return { first, call: times.sort((a, b) => a - b)[5], answer };
}

/** A text; a call is a token after the first: what sixteen more take, by sixteen. */
async function generated(generate) {
  const text = TEXTS.join(' ');
  const call = (tokens) => generate(text, { max_new_tokens: tokens, min_new_tokens: tokens, do_sample: false });
  const [first] = await took(() => call(1));
  const [whole, answer] = await took(() => call(17));
  const [one] = await took(() => call(1));
  return { first, call: (whole - one) / 16, answer: answer[0].generated_text };
}

/** Loads `name`'s pipeline and measures it, in milliseconds. */
export async function measured(name, base, task, dtype) {
  const [load, run] = await took(() => packages[name](base, task, dtype));
  const { first, call, answer } = await (task === 'sentence-embedding' ? embedded : generated)(run, name);
  return { load, result: load + first, call, answer };
}
