// What calls are given beside JSON: images and audio. They travel to the worker as they are, and are files to the runtime there.

/** Samples a second where a `Float32Array` comes without: what models of speech are trained on. */
const RATE = 16_000;

// What the runtime decodes itself, as the reference does. Anything else the browser decodes.
const DECODED = /^(image\/(png|jpeg|webp|gif)|audio\/(wav|wave|x-wav|vnd\.wave|flac|x-flac|mpeg|mp3))\b/;

/** Inputs and parameters as JSON, in which names stand for files; and the files by their names. */
export async function taken(inputs, parameters) {
  const files = {};
  let next = 0;
  const named = (file) => {
    const name = `input:${next++}`;
    files[name] = file;
    return name;
  };
  const walk = async (value, samples) => {
    if (value === null || typeof value !== 'object') return value;
    if (value instanceof Float32Array) return samples ? named({ samples: value, rate: RATE }) : [...value];
    if (is('AudioBuffer', value)) return named({ samples: mono(value), rate: value.sampleRate });
    if ((value.array ?? value.raw) instanceof Float32Array) {
      return named({ samples: value.array ?? value.raw, rate: value.sampling_rate ?? RATE });
    }
    if (is('Blob', value)) return named(await decoded(value));
    const image = pixels(value);
    if (image) return named(image);
    if (ArrayBuffer.isView(value)) return [...value];
    // A video is a file to the runtime, too, which lists the names of its frames.
    if (Array.isArray(value.frames)) return named(new Blob([JSON.stringify(await walk(value.frames))]));
    if (Array.isArray(value)) return Promise.all(value.map((one) => walk(one, samples)));
    const entries = Object.entries(value).map(async ([key, one]) => [key, await walk(one, samples)]);
    return Object.fromEntries(await Promise.all(entries));
  };
  return { inputs: await walk(inputs, true), parameters: await walk(parameters, false), files };
}

const is = (type, value) => type in globalThis && value instanceof globalThis[type];

/** `ImageData` of what has pixels; nothing of other things. */
function pixels(value) {
  if (is('ImageData', value)) return value;
  const [width, height] = is('HTMLVideoElement', value)
    ? [value.videoWidth, value.videoHeight]
    : is('HTMLImageElement', value)
      ? [value.naturalWidth, value.naturalHeight]
      : is('VideoFrame', value)
        ? [value.displayWidth, value.displayHeight]
        : ['HTMLCanvasElement', 'OffscreenCanvas', 'ImageBitmap'].some((type) => is(type, value))
          ? [value.width, value.height]
          : [];
  if (width === undefined) return undefined;
  if (width === 0 || height === 0) throw new TypeError('the image has no pixels yet: wait until it is loaded');
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context.drawImage(value, 0, 0, width, height);
  return context.getImageData(0, 0, width, height);
}

/** A file as it is where the runtime reads its format, else what the browser makes of it. */
async function decoded(blob) {
  if (blob.type === '' || DECODED.test(blob.type)) return blob;
  if (blob.type.startsWith('image/')) return pixels(await createImageBitmap(blob));
  if (!/^(audio|video)\//.test(blob.type) || !('OfflineAudioContext' in globalThis)) return blob;
  const context = new OfflineAudioContext(1, 1, RATE);
  const audio = await context.decodeAudioData(await blob.arrayBuffer());
  return { samples: mono(audio), rate: audio.sampleRate };
}

/** The mean of all channels. */
function mono(audio) {
  const samples = audio.getChannelData(0).slice();
  for (let channel = 1; channel < audio.numberOfChannels; channel++) {
    audio.getChannelData(channel).forEach((sample, index) => (samples[index] += sample));
  }
  return audio.numberOfChannels === 1 ? samples : samples.map((sample) => sample / audio.numberOfChannels);
}
