// Compiled, not run: what the types of the packages say of calls and answers.

import { pipeline, type Answer, type Filled, type Label } from '../../web/npm/index.js';

export async function calls(): Promise<void> {
  const embed = await pipeline('sentence-embedding', 'org/name', {
    device: 'webgpu',
    dtype: 'q4',
    progress: (progress) => console.log(progress.status === 'progress' ? progress.loaded : progress.status),
  });
  const one: number[] = await embed('A text.');
  const many: number[][] = await embed(['A text.', 'Another.'], { normalize_embeddings: true });
  const fill = await pipeline('fill-mask', 'org/name');
  const filled: Filled[] | Filled[][] = await fill('A [MASK].', { top_k: 2, signal: new AbortController().signal });
  const classify = await pipeline('text-classification', 'org/name');
  const labels: Label[] = await classify(['A text.']);
  const all: Label[][] = await classify(['A text.'], { top_k: null });
  const read = await pipeline('question-answering', 'org/name');
  const answer: Answer = await read({ question: 'Who?', context: 'Anni.' });
  console.log(one, many, filled, labels, all, answer.answer, embed.about.bytes.fetched);
  await embed.dispose();

  // @ts-expect-error: there is no such task
  await pipeline('text-embeddings', 'org/name');
  // @ts-expect-error: there is no such device
  await pipeline('fill-mask', 'org/name', { device: 'cuda' });
  // @ts-expect-error: a vector is no text
  const text: string = await embed('A text.');
  console.log(text);
}
