"""A model that is a table: the scores of the next token hang on the last two tokens alone.

The table is the tensor `scores` `[VOCAB, VOCAB, VOCAB]` of the weight rule times `SCALE`, so that another
implementation has the same scores to the last bit.
"""

from __future__ import annotations

import numpy as np
import torch
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from weft_reference import weights

VOCAB = 17
SCALE = np.float32(48.0)


class TableConfig(PreTrainedConfig):
    model_type = "table"


class Table(PreTrainedModel, GenerationMixin):
    config_class = TableConfig

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        table = weights.values("scores", (VOCAB, VOCAB, VOCAB)).reshape(VOCAB, VOCAB, VOCAB) * SCALE
        self.table = torch.nn.Parameter(torch.from_numpy(table), requires_grad=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: object) -> CausalLMOutput:
        before = torch.cat([input_ids[:, :1], input_ids[:, :-1]], dim=1)
        return CausalLMOutput(logits=self.table[before, input_ids])


def table() -> Table:
    return Table(TableConfig(vocab_size=VOCAB, use_cache=False)).eval()
