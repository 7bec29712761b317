#!/usr/bin/env python3
"""Write whole networks, and blocks of networks, as exporters write them, with the outputs of ONNX Runtime.

    make_network_cases.py OUTDIR [--seed N] [--only TEXT] [--list]
    make_network_cases.py OUTDIR --large [--only TEXT]

OUTDIR/NAME/model.onnx with OUTDIR/NAME/test_data_set_K/{input,output}_N.pb, small enough for a test. --large writes
some of them in realistic sizes, as OUTDIR/NAME.onnx, NAME.inputs.npz and NAME.expected.npz, for `hone bench` and
bench/peers. Each depends on the seed and its name alone. A network that ONNX Runtime refuses is an error. Needs the
packages numpy, onnx and onnxruntime of the Python index.
"""
import argparse
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from networks import (batches, control, decoders, dense, generators, images, language, narrow,  # noqa: F401
                      sound, spatial, tables)
from networks.net import LARGE, NETWORKS, Net


def model_of(net, outputs):
    # Before the fourth IR initializers were inputs too.
    old = net.opset < 9
    inputs = net.inputs + [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in net.constants if old]
    graph = helper.make_graph(net.nodes, "main_graph" if net.style != "tf" else "tf2onnx", inputs,
                              [helper.make_empty_tensor_value_info(name) for name in outputs], net.constants)
    makers = {"torch": ("pytorch", "2.1.0"), "dynamo": ("pytorch", "2.9.0"), "tf": ("tf2onnx", "1.16.1")}
    domains = sorted({each.domain for each in [*net.functions, *net.nodes] if each.domain})
    model = helper.make_model(graph, functions=net.functions,
                              opset_imports=[helper.make_opsetid("", net.opset)] +
                              [helper.make_opsetid(domain, 1) for domain in domains],
                              ir_version=3 if old else {"torch": 8, "dynamo": 10, "tf": 8}[net.style])
    model.producer_name, model.producer_version = makers[net.style]
    # ONNX Runtime wants the outputs' types; what has symbolic extents keeps them.
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    types = {info.name: info for info in inferred.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(types[name] for name in outputs)
    return model


def run(model, sets):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [session.run(None, values) for values in sets]


def check(name, results):
    for result in results:
        for i, value in enumerate(result):
            if value.size == 0:
                raise SystemExit(f"{name}: output {i} has no elements")
            if value.dtype.kind == "f" and (not np.isfinite(value).all() or value.size > 1 and np.ptp(value) == 0):
                raise SystemExit(f"{name}: output {i} is not finite, or constant")


def write_case(folder, model, net, results):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for k, (values, result) in enumerate(zip(net.values, results)):
        data = folder / f"test_data_set_{k}"
        data.mkdir()
        for i, info in enumerate(net.inputs):
            tensor = numpy_helper.from_array(values[info.name], info.name)
            (data / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
        for i, (info, value) in enumerate(zip(model.graph.output, result)):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())


def write_large(out, model, net, results):
    # A benchmark binds no dimensions.
    for info in model.graph.input:
        for dim, extent in zip(info.type.tensor_type.shape.dim, net.values[0][info.name].shape):
            dim.dim_value = extent
    for info, value in zip(model.graph.output, results[0]):
        info.CopyFrom(helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, value.shape))
    onnx.save(model, str(out / f"{net.name}.onnx"))
    np.savez(out / f"{net.name}.inputs.npz", **net.values[0])
    np.savez(out / f"{net.name}.expected.npz", **{i.name: v for i, v in zip(model.graph.output, results[0])})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in (LARGE if arguments.large else NETWORKS) if arguments.only in name]
    if arguments.list:
        return print("\n".join(names))
    if not arguments.only:
        shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        function, opset, style, sets = NETWORKS[name]
        net = Net(name, opset, style, sets, arguments.seed, arguments.large)
        outputs = function(net)
        outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        try:
            model = model_of(net, outputs)
            results = run(model, net.values)
        except Exception as error:
            sys.exit(f"{name}: {error}")
        check(name, results)
        if arguments.large:
            write_large(arguments.out, model, net, results)
        else:
            shutil.rmtree(arguments.out / name, ignore_errors=True)
            write_case(arguments.out / name, model, net, results)
    print(f"seed {arguments.seed}: {len(names)} networks in {arguments.out}")


if __name__ == "__main__":
    main()
