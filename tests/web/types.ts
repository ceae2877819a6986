// Compiled, not run: what the types of the packages say of calls and answers.

import { pipeline, type Answer, type Candidate, type Detection, type Label } from '../../web/npm/index.js';

export async function calls(): Promise<void> {
  const embed = await pipeline('sentence-embedding', 'org/name', {
    device: 'webgpu',
    dtype: { '*': 'q4', vision_tower: 'fp32' },
    kv_cache_dtype: 'q8',
    progress: (progress) => console.log(progress.status === 'progress' ? progress.loaded : progress.status),
  });
  const one: number[] = await embed('A text.');
  const many: number[][] = await embed(['A text.', 'Another.'], { normalize_embeddings: true });
  const fill = await pipeline('fill-mask', 'org/name');
  const filled: Candidate[] | Candidate[][] = await fill('A [MASK].', { top_k: 2, signal: new AbortController().signal });
  const classify = await pipeline('text-classification', 'org/name');
  const labels: Label[] | Label[][] = await classify(['A text.'], { top_k: null });
  const read = await pipeline('question-answering', 'org/name');
  const answer: Answer | Answer[] = await read({ question: 'Who?', context: 'Anni.' });
  const detect = await pipeline('object-detection', 'org/name');
  const found: Detection[] = await detect(document.createElement('canvas'), { threshold: 0.5 });
  const hear = await pipeline('automatic-speech-recognition', 'org/name');
  const { text: heard } = await hear(new Float32Array(16_000), { return_timestamps: true });
  const watch = await pipeline('zero-shot-video-classification', 'org/name', { device: 'webnn-npu', dtype: 'q4-mixed' });
  const seen: Label[] = await watch({ frames: [document.createElement('canvas')] }, { candidate_labels: ['a', 'b'] });
  console.log(seen[0]?.label, watch.about.graphics?.maxBufferSize);
  console.log(one, many, filled, labels, answer, found[0]?.box.xmin, heard, embed.about.bytes.fetched);
  await embed.dispose();

  // @ts-expect-error: there is no such task
  await pipeline('text-embeddings', 'org/name');
  // @ts-expect-error: there is no such device
  await pipeline('fill-mask', 'org/name', { device: 'cuda' });
  // @ts-expect-error: a vector is no text
  const text: string = await embed('A text.');
  console.log(text);
}
