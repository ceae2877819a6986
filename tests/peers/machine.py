"""What the machine does at most, by PyTorch: products of float32 matrices, and reading memory.

    python tests/peers/machine.py [--threads 2]

Takes turns with the contenders, so that its peaks are those of the same minutes. Serves as `serving.py` says: `products` and
`reading` are milliseconds for the `work` that it tells when it is ready.
"""

from __future__ import annotations

import argparse
import time

import torch

from serving import Round, say, serve

SIDE = 2048
# Well above the last cache of any processor.
READ = (32768, 4096)


def rounds() -> Round:
    a, b = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    weights, x = torch.rand(READ), torch.rand(READ[1])

    def best(of) -> float:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            of()
            times.append((time.perf_counter() - began) * 1e3)
        return min(times)

    # A matrix times a vector, as a decoder's token reads weights, or the sum of all, whichever reads faster.
    return lambda: {"products": best(lambda: a @ b), "reading": min(best(lambda: weights @ x), best(lambda: weights.sum()))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    work = {"products": {"flops": 2 * SIDE**3, "bytes": 0}, "reading": {"flops": 0, "bytes": 4 * READ[0] * READ[1]}}
    say(ready=True, peer="machine", version=torch.__version__, work=work)
    serve(rounds())


if __name__ == "__main__":
    main()
