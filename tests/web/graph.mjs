// ONNX models of one node: `y = x + w` of four numbers, whose `w` is a range of `model.safetensors`, and a cache of fixed capacity.

const number = (value) => {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
};
const count = (field, value) => [...number(field * 8), ...number(value)];
const part = (field, value) => {
  const bytes = typeof value === 'string' ? [...new TextEncoder().encode(value)] : value;
  return [...number(field * 8 + 2), ...number(bytes.length), ...bytes];
};

const floats = (...dims) => part(2, part(1, [...count(1, 1), ...part(2, dims.flatMap((length) => part(1, count(1, length))))]));
const model = (graph) => [...count(1, 10), ...part(7, graph), ...part(8, count(2, 21))];

/** `present.0.key = past_key_values.0.key + x`, `[1, 2, 4, 3]` each. */
export function cached() {
  const [past, present] = ['past_key_values.0.key', 'present.0.key'];
  const node = [...part(1, past), ...part(1, 'x'), ...part(2, present), ...part(4, 'Add')];
  const inputs = [past, 'x'].flatMap((name) => part(11, [...part(1, name), ...floats(1, 2, 4, 3)]));
  return model([...part(1, node), ...part(2, 'cached'), ...inputs, ...part(12, [...part(1, present), ...floats(1, 2, 4, 3)])]);
}

/** The addition; `w` begins at this byte of the file. */
export function addition(offset) {
  const four = floats(4);
  const external = (key, value) => part(13, [...part(1, key), ...part(2, value)]);
  const node = [...part(1, 'x'), ...part(1, 'w'), ...part(2, 'y'), ...part(4, 'Add')];
  const weight = [
    ...count(1, 4),
    ...count(2, 1),
    ...part(8, 'w'),
    ...external('location', 'model.safetensors'),
    ...external('offset', String(offset)),
    ...external('length', '16'),
    ...count(14, 1),
  ];
  const graph = [
    ...part(1, node),
    ...part(2, 'addition'),
    ...part(5, weight),
    ...part(11, [...part(1, 'x'), ...four]),
    ...part(12, [...part(1, 'y'), ...four]),
  ];
  return model(graph);
}
