// Shows what `weft export --to transformersjs` wrote to transformers.js: `node check.mjs EXPORTS [MINILM]`.

import { readFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { env, pipeline } from "@huggingface/transformers";

env.allowRemoteModels = false;
const open = (task, folder, dtype) => {
  env.localModelPath = dirname(resolve(folder));
  return pipeline(task, basename(folder), { dtype });
};

const llama = `${process.argv[2]}/llama-js`;
const call = JSON.parse(readFileSync(`${llama}/task.json`, "utf8")).calls[0];
for (const dtype of ["fp32", "q4"]) {
  const generate = await open("text-generation", llama, dtype);
  const got = await generate(call.inputs, { max_new_tokens: call.parameters.max_new_tokens, do_sample: false });
  console.log(dtype, JSON.stringify(got[0].generated_text));
  if (dtype === "fp32" && got[0].generated_text !== call.output[0].generated_text) {
    throw new Error(`expected ${JSON.stringify(call.output[0].generated_text)}`);
  }
}

const expect = (what, got, want) => {
  console.log(what, JSON.stringify(got));
  if (got !== want) throw new Error(`expected ${JSON.stringify(want)}`);
};

// Encoder-decoders: greedy calls of the goldens.
const t5 = `${process.argv[2]}/t5-js`;
const texts = JSON.parse(readFileSync(`${t5}/task.json`, "utf8")).calls[2];
for (const dtype of ["fp32", "fp16"]) {
  const generate = await open("text2text-generation", t5, dtype);
  const got = await generate(texts.inputs, texts.parameters);
  got.forEach((one, i) => expect(`T5 ${dtype}`, one.generated_text, texts.output[i].generated_text));
}
const whisper = `${process.argv[2]}/whisper-js`;
const speech = JSON.parse(readFileSync(`${whisper}/task.json`, "utf8")).calls[2];
// Mono, 16 bits, 16 kHz, behind a header of 44 bytes.
const wave = readFileSync(`${whisper}/${speech.inputs}`);
const samples = Float32Array.from({ length: (wave.length - 44) / 2 }, (_, i) => wave.readInt16LE(44 + 2 * i) / 32768);
const transcribe = await open("automatic-speech-recognition", whisper, "fp32");
// The reference does not count the prompt's four tokens.
const heard = await transcribe(samples, { ...speech.parameters.generate_kwargs, task: "transcribe", max_new_tokens: 36 });
expect("Whisper", heard.text, speech.output.text);

if (process.argv[3]) {
  // The folder also holds `want.json`: the vector that `weft run` gives for the text.
  const want = JSON.parse(readFileSync(`${process.argv[3]}/want.json`, "utf8"));
  for (const [dtype, most] of [["fp32", 1e-4], ["fp16", 1e-2], ["q8", 5e-2], ["q4", 0.3]]) {
    const embed = await open("feature-extraction", process.argv[3], dtype);
    const got = (await embed(want.text, { pooling: "mean", normalize: true })).tolist()[0];
    const error = Math.max(...got.map((x, i) => Math.abs(x - want.vector[i])));
    console.log("MiniLM", dtype, error.toExponential(1));
    if (!(error <= most)) throw new Error(`off by ${error}`);
  }
}
