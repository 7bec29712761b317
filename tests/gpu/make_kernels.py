#!/usr/bin/env python3
"""The models of one operator that scripts/gpu_check.sh times, as ONNX without weights:

    make_kernels.py OUTDIR

Names end with what scripts/gpu_peers.py needs to make the same of PyTorch. Needs onnx."""
import pathlib
import sys

from onnx import TensorProto, checker, helper, save

F32 = TensorProto.FLOAT
ROWS = {
    # Operator, shapes of the inputs, attributes. The first two are for a driver that is a mock.
    "add_tiny": ("Add", [(8, 32), (8, 32)], {}),
    "softmax_tiny": ("Softmax", [(4, 33)], {"axis": -1}),
    "add_64mb": ("Add", [(4096, 4096), (4096, 4096)], {}),
    "softmax_4096x4096": ("Softmax", [(4096, 4096)], {"axis": -1}),
    "softmax_512x32768": ("Softmax", [(512, 32768)], {"axis": -1}),
    "layernorm_16384x1024": ("LayerNormalization", [(16384, 1024), (1024,)], {"axis": -1}),
    "sum_16384x1024": ("ReduceSum", [(16384, 1024)], {"keepdims": 0}),
    "matmul_16x4096x4096": ("MatMul", [(16, 4096), (4096, 4096)], {}),
    "matmul_1024": ("MatMul", [(1024, 1024), (1024, 1024)], {}),
    "matmul_2048": ("MatMul", [(2048, 2048), (2048, 2048)], {}),
    "matmul_4096": ("MatMul", [(4096, 4096), (4096, 4096)], {}),
    "conv_56x56x64x3": ("Conv", [(32, 64, 56, 56), (64, 64, 3, 3)], {"pads": [1, 1, 1, 1]}),
    "conv_14x14x256x3": ("Conv", [(32, 256, 14, 14), (256, 256, 3, 3)], {"pads": [1, 1, 1, 1]}),
    "conv_28x28x512x1": ("Conv", [(32, 512, 28, 28), (128, 512, 1, 1)], {}),
}


def model_of(name):
    operator, shapes, attributes = ROWS[name]
    inputs = [helper.make_tensor_value_info(f"x{i}", F32, s) for i, s in enumerate(shapes)]
    names = [value.name for value in inputs]
    initializers = []
    if operator == "ReduceSum":
        initializers = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])]
        names.append("axes")
    node = helper.make_node(operator, names, ["y"], **attributes)
    first, last = shapes[0], shapes[-1]
    result = {"MatMul": (*first[:-1], last[-1]), "ReduceSum": first[:1],
              "Conv": (first[0], last[0], *first[2:])}.get(operator, first)
    output = helper.make_tensor_value_info("y", F32, result)
    graph = helper.make_graph([node], name, inputs, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model, full_check=True)
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ROWS:
        save(model_of(name), str(folder / f"{name}.onnx"))


if __name__ == "__main__":
    main()
