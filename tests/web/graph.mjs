// `y = x + w` of four numbers as an ONNX model, whose `w` is a range of `model.safetensors`.

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

/** The model; `w` begins at this byte of the file. */
export function addition(offset) {
  const four = part(2, part(1, [...count(1, 1), ...part(2, part(1, count(1, 4)))]));
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
  return [...count(1, 10), ...part(7, graph), ...part(8, count(2, 21))];
}
