// Pixels and samples as the bytes of files that the runtime reads: PNG and WAV, which lose nothing.

/** The bytes of a file of `taken`. */
export async function bytesOf(file) {
  if (file instanceof Blob) return new Uint8Array(await file.arrayBuffer());
  return file.samples ? wav(file) : png(file);
}

/** A mono WAV file of 32-bit floating-point samples. */
export function wav({ samples, rate }) {
  const data = samples.length * 4;
  const bytes = new Uint8Array(58 + data);
  const view = new DataView(bytes.buffer);
  const word = (at, text) => bytes.set([...text].map((letter) => letter.charCodeAt(0)), at);
  word(0, 'RIFF');
  view.setUint32(4, 50 + data, true);
  word(8, 'WAVEfmt ');
  view.setUint32(16, 18, true);
  view.setUint16(20, 3, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 4, true);
  view.setUint16(32, 4, true);
  view.setUint16(34, 32, true);
  word(38, 'fact');
  view.setUint32(42, 4, true);
  view.setUint32(46, samples.length, true);
  word(50, 'data');
  view.setUint32(54, data, true);
  // Not aligned, so that bytes are copied and not numbers.
  bytes.set(new Uint8Array(samples.buffer, samples.byteOffset, data), 58);
  return bytes;
}

const BLOCK = 65_535;

/** A PNG file of the red, green and blue of `ImageData`, not compressed. */
export function png({ width, height, data }) {
  const row = 3 * width + 1;
  const raw = new Uint8Array(row * height);
  for (let y = 0, from = 0; y < height; y++) {
    for (let x = 0, to = y * row + 1; x < width; x++, from += 4, to += 3) {
      raw[to] = data[from];
      raw[to + 1] = data[from + 1];
      raw[to + 2] = data[from + 2];
    }
  }
  const blocks = Math.max(1, Math.ceil(raw.length / BLOCK));
  const stream = new Uint8Array(2 + 5 * blocks + raw.length + 4);
  const view = new DataView(stream.buffer);
  stream.set([0x78, 0x01]);
  let at = 2;
  for (let block = 0; block < blocks; block++) {
    const part = raw.subarray(block * BLOCK, (block + 1) * BLOCK);
    stream[at] = block === blocks - 1 ? 1 : 0;
    view.setUint16(at + 1, part.length, true);
    view.setUint16(at + 3, 0xffff - part.length, true);
    stream.set(part, at + 5);
    at += 5 + part.length;
  }
  view.setUint32(at, adler(raw));
  const header = new Uint8Array(13);
  new DataView(header.buffer).setUint32(0, width);
  new DataView(header.buffer).setUint32(4, height);
  // Eight bits of red, green and blue.
  header.set([8, 2], 8);
  const chunks = [chunk('IHDR', header), chunk('IDAT', stream), chunk('IEND', new Uint8Array())];
  const signature = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
  const all = new Uint8Array(chunks.reduce((sum, one) => sum + one.length, signature.length));
  all.set(signature);
  chunks.reduce((place, one) => (all.set(one, place), place + one.length), signature.length);
  return all;
}

function chunk(name, content) {
  const bytes = new Uint8Array(12 + content.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, content.length);
  bytes.set([...name].map((letter) => letter.charCodeAt(0)), 4);
  bytes.set(content, 8);
  view.setUint32(8 + content.length, crc(bytes.subarray(4, 8 + content.length)));
  return bytes;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc(bytes) {
  let value = 0xffffffff;
  for (let index = 0; index < bytes.length; index++) value = TABLE[(value ^ bytes[index]) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function adler(bytes) {
  let [a, b] = [1, 0];
  for (let index = 0; index < bytes.length; ) {
    // So many sums fit 32 bits.
    for (const end = Math.min(index + 3800, bytes.length); index < end; index++) b += a += bytes[index];
    a %= 65_521;
    b %= 65_521;
  }
  return ((b << 16) | a) >>> 0;
}
