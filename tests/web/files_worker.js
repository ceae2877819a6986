// Reads ranges of a file by the package's `files.js`, in a worker as a pipeline does, which has the origin's private file system.

onmessage = async ({ data: { files: place, url, ranges, cache = true } }) => {
  const { Files } = await import(place);
  const events = [];
  const files = new Files({ cache, headers: {}, progress: (event) => events.push(event) });
  try {
    const blob = await files.blob(url, ranges);
    let sum = 0;
    for (const [offset, length] of ranges) {
      for (const byte of new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer())) sum = (sum * 31 + byte) % 1_000_003;
    }
    await files.rest();
    const warnings = events.filter(({ status }) => status === 'warning').map(({ message }) => message);
    postMessage({ sum, counts: files.counts(), warnings });
  } catch (error) {
    postMessage({ error: error.message, counts: files.counts() });
  }
};
