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
