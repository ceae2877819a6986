"""GPTQ as it is published, for the case of `runtime/src/quantization/gptq/tests.rs`: prints its codes.

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (ICLR 2023), algorithm 1,
with columns in the order of their inputs' sizes and scales of the weights as they were. Run: `python -m weft_reference.gptq`.
"""

import torch

OUT, COLUMNS, ROWS, GROUP = 6, 64, 160, 16


def weight() -> torch.Tensor:
    """A weight `[out, in]`."""
    value = lambda i, j: ((i * 37 + j * 23 + i * j * 5) % 29) / 29 - 0.48
    return torch.tensor([[value(i, j) for j in range(COLUMNS)] for i in range(OUT)], dtype=torch.float64)


def inputs() -> torch.Tensor:
    """Inputs `[rows, in]` of columns that are of different sizes and go together."""

    def value(i: int, j: int) -> float:
        own = ((i * 41 + j * 13 + i * j * 7) % 31) / 31 - 0.45
        return own * (1 + j % 5) + (0.8 if (i * 3 + j // 4) % 4 == 0 else 0)

    return torch.tensor([[value(i, j) for j in range(COLUMNS)] for i in range(ROWS)], dtype=torch.float64)


def scales(w: torch.Tensor, symmetric: bool) -> list[torch.Tensor]:
    """The scale and the zero point of each element's group."""
    groups = w.reshape(OUT, COLUMNS // GROUP, GROUP)
    if symmetric:
        scale = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)) / -8
        zero = torch.full_like(scale, 8)
    else:
        least, most = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
        scale = (most - least) / 15
        zero = (-least / scale).round().clamp(0, 15)
    return [each.expand(-1, -1, GROUP).reshape(OUT, COLUMNS) for each in (scale, zero)]


def gptq(symmetric: bool) -> tuple[torch.Tensor, float]:
    """The codes, and what outputs are off by, squared, in all."""
    w, x = weight(), inputs()
    scale, zero = scales(w, symmetric)
    hessian = x.T @ x
    order = torch.argsort(hessian.diag(), descending=True, stable=True)
    hessian = hessian[order][:, order]
    hessian += 0.01 * hessian.diag().mean() * torch.eye(COLUMNS)
    inverse = torch.linalg.cholesky(torch.linalg.inv(hessian), upper=True)
    left, codes = w[:, order].clone(), torch.zeros(OUT, COLUMNS)
    for j, column in enumerate(order):
        code = ((left[:, j] / scale[:, column]).round() + zero[:, column]).clamp(0, 15)
        codes[:, column] = code.float()
        error = (left[:, j] - (code - zero[:, column]) * scale[:, column]) / inverse[j, j]
        left[:, j:] -= error[:, None] * inverse[j, j:]
    off = (w - (codes - zero) * scale) @ x.T
    return codes.int(), off.square().sum().item()


if __name__ == "__main__":
    for symmetric in (True, False):
        codes, error = gptq(symmetric)
        print("symmetric" if symmetric else "asymmetric", f"{error:.4f}")
        for row in codes.tolist():
            print("".join(f"{code:x}" for code in row))
