#!/usr/bin/env python3
"""Write random operator cases whose outputs are those of ONNX Runtime, in the layout of libonnx-testdata.

    make_random_cases.py OUTDIR [--seed N] [--each N] [--only FAMILY]

OUTDIR/FAMILY_K/model.onnx with OUTDIR/FAMILY_K/test_data_set_0/{input,output}_N.pb. The shapes are odd on purpose:
primes, ones, ranks 0 to 6, broadcasting, uneven strides, pads and dilations, groups, batches; operator sets 18 and
later with their new attributes, and 7 to 17 in their own spellings. Each case depends on the seed, its family and its
number alone. Cases that ONNX Runtime refuses are left out and counted. Needs the packages numpy, ml_dtypes, onnx and
onnxruntime of the Python index.
"""
import argparse
import pathlib
import random
import shutil
import sys
import zlib

import ml_dtypes
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from families import arithmetic, layers, older, shapes, windows
from families.case import Case

FAMILIES = {f.__name__.strip("_"): f for f in (
    arithmetic.unary, arithmetic.integer_unary, arithmetic.binary, arithmetic.extreme, arithmetic.logic, arithmetic.variadic,
    arithmetic.cast, arithmetic.half, arithmetic.brain, arithmetic.reduce, arithmetic.arg_reduce, arithmetic.softmax,
    arithmetic.cumsum,
    windows.conv, windows.conv_transpose, windows.pool, windows.matmul, windows.gemm, windows.einsum,
    windows.resize, windows.sampling, shapes.transpose, shapes.reshape, shapes.slice_, shapes.pad, shapes.concat,
    shapes.split, shapes.gather, shapes.scatter, shapes.selection, layers.normalise, layers.recurrent,
    layers.quantised, layers.chain, layers.block, older.older_reduce, older.older_softmax, older.older_resize,
    older.older_pick, older.older_layer)}
OPSETS = [18, 19, 20, 21, 22, 23, 24]  # of families that name none of their own


def model_of(case, outputs):
    graph = helper.make_graph(case.nodes, "random", case.inputs,
                              [helper.make_empty_tensor_value_info(name) for name in outputs], case.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model)
    kinds = {info.name: info for info in model.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(kinds[name] for name in outputs)
    return model


def reference(model, values):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, values)


def in_float32(model):
    """The same computed in float32, of values rounded to bfloat16."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.node[:], wide.graph.value_info[:]
    for node in model.graph.node:
        wide.graph.node.append(node)
        if node.op_type == "Cast":
            rounded = node.output[0] + "_rounded"
            wide.graph.node[-1].output[0] = rounded
            wide.graph.node.append(helper.make_node("Cast", [rounded], node.output, to=onnx.TensorProto.FLOAT))
    for output in wide.graph.output:
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return wide


def write(folder, model, case, outputs, results):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    for output, result in zip(model.graph.output, results):
        kind = helper.np_dtype_to_tensor_dtype(result.dtype)
        output.CopyFrom(helper.make_tensor_value_info(output.name, kind, result.shape))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, info in enumerate(case.inputs):
        tensor = numpy_helper.from_array(case.values[info.name], info.name)
        (data / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
    for i, (name, result) in enumerate(zip(outputs, results)):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(result, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=40, help="cases of each family")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    written, refused = 0, {}
    for family, draw in FAMILIES.items():
        if arguments.only not in family:
            continue
        for number in range(arguments.each):
            rng = random.Random(zlib.crc32(f"{arguments.seed}/{family}/{number}".encode()))
            case = Case(rng, rng.choice(getattr(draw, "opsets", OPSETS)))
            outputs = draw(case)
            if not outputs:
                continue
            try:
                model = model_of(case, outputs)
                results = reference(in_float32(model) if case.brain else model, case.values)
                if case.brain:
                    results = [result.astype(ml_dtypes.bfloat16) for result in results]
                if any(result.size == 0 for result in results):
                    raise ValueError("an output without elements")
            except Exception as error:  # whatever ONNX Runtime lacks
                refused.setdefault(family, []).append(str(error).splitlines()[0][:160])
                continue
            write(arguments.out / f"{family}_{number}", model, case, outputs, results)
            written += 1
    print(f"seed {arguments.seed}: {written} random cases in {arguments.out}")
    for family, errors in refused.items():
        print(f"  {family}: {len(errors)} refused, the first: {errors[0]}", file=sys.stderr)


if __name__ == "__main__":
    main()
