// Stands in for the package's WebAssembly: answers as its name says, so that the scripts around it can be tested alone.

export default async function init() {
  return { memory: new WebAssembly.Memory({ initial: 1 }) };
}

export async function load(task, checkpoint, hardware, precisions) {
  if (task === 'trap') {
    weftHost.panicked('index out of bounds');
    throw new WebAssembly.RuntimeError('unreachable');
  }
  if (task === 'endless') await new Promise(() => {});
  if ((await weftHost.size(`${checkpoint}/config.json`)) < 0) throw new Error(`${checkpoint}: no config.json`);
  return JSON.stringify({ about: { device: hardware, explanation: JSON.parse(precisions).weights ?? 'as it is stored' } });
}

export async function run(inputs, parameters, streaming) {
  for (let token = 0; streaming; token++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    if (!weftHost.text(`${token} `)) return JSON.stringify(`ended at ${token}`);
  }
  return JSON.stringify([JSON.parse(inputs), JSON.parse(parameters)]);
}
