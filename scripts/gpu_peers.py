#!/usr/bin/env python3
"""Times one row of gpu_check.sh in PyTorch, on this machine's GPU:

    gpu_peers.py ROW

ROW names a file of kernels/ (tests/gpu/make_kernels.py). Prints one JSON object: `cublas` (matrix
products) or `eager` (cuDNN's convolutions, PyTorch's own kernels), `compiled`
(torch.compile(mode="max-autotune")) and `triton` (its version, whose kernels the compiled ones are),
each the median in microseconds of a run replayed as a CUDA graph, on random normal numbers. TF32 is
off. `missing` says why a column is empty."""
import json
import statistics
import sys


def operation(torch, name):
    """The function of the row and its inputs."""
    def draw(*shape):
        return torch.randn(*shape, device="cuda")

    functional = torch.nn.functional
    kind, _, sizes = name.partition("_")
    if kind == "add":
        shape = (8, 32) if sizes == "tiny" else (4096, 4096)
        return torch.add, (draw(*shape), draw(*shape))
    if kind in ("softmax", "sum", "layernorm"):
        shape = (4, 33) if sizes == "tiny" else tuple(int(n) for n in sizes.split("x"))
        if kind == "layernorm":
            return (lambda x, w: functional.layer_norm(x, x.shape[-1:], w)), (draw(*shape), draw(shape[1]))
        return (lambda x: getattr(torch, kind)(x, -1)), (draw(*shape),)
    if kind == "matmul":
        m, *rest = (int(n) for n in sizes.split("x"))
        k, n = rest or (m, m)
        return torch.matmul, (draw(m, k), draw(k, n))
    if kind == "conv":
        height, width, channels, window = (int(n) for n in sizes.split("x"))
        out = 128 if window == 1 else channels
        return ((lambda x, w: functional.conv2d(x, w, padding=window // 2)),
                (draw(32, channels, height, width), draw(out, channels, window, window)))
    raise SystemExit(f"gpu_peers.py: no row {name}")


def replayed_us(torch, function, inputs, runs=50):
    """Median of runs, each a graph's replay between two events."""
    for _ in range(3):
        function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(*inputs)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(runs):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def main():
    try:
        import torch
    except ImportError as error:
        return {"missing": f"PyTorch is not here ({error})"}
    if not torch.cuda.is_available():
        return {"missing": "PyTorch sees no GPU"}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    function, inputs = operation(torch, sys.argv[1])
    row = {"torch": torch.__version__}
    with torch.no_grad():
        row["cublas" if sys.argv[1].startswith("matmul") else "eager"] = replayed_us(torch, function, inputs)
        try:
            import triton
            row["triton"] = triton.__version__
            # Its own graphs are off: ours is made around it.
            options = {"max_autotune": True, "triton.cudagraphs": False}
            row["compiled"] = replayed_us(torch, torch.compile(function, options=options), inputs)
        except Exception as error:  # whatever a compiler of another version says
            row["missing"] = f"torch.compile: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
    return row


if __name__ == "__main__":
    print(json.dumps(main()))
