#!/usr/bin/env python3
"""Write a network that was exported for one image or sequence so that it takes several.

    with_batch.py MODEL.onnx N OUT.onnx [--size S]

The first extent of each input becomes N, and so does a leading 1 in the constant shapes of Reshape nodes; a leading 128
there (tokens of one sequence) becomes -1. Constant positions of a GatherND become those of every image. --size gives
height and width of images. Declared shapes of inner values go.
Networks that write the batch elsewhere (the class token of vit_small, computed shapes of bert_small) are refused by
whoever loads the result. External data is linked, or copied, beside OUT.onnx. Needs numpy and onnx.
"""
import argparse
import os
import pathlib
import shutil

import numpy
import onnx
from onnx import numpy_helper


def reshape(tensor, batch):
    shape = numpy_helper.to_array(tensor).copy()
    if shape.size and shape[0] in (1, 128):
        shape[0] = batch if shape[0] == 1 else -1
        tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))


def positions(tensor, batch, folder):
    one = numpy_helper.to_array(tensor, str(folder))
    if one.shape[0] != 1:
        return
    every = one.repeat(batch, axis=0)
    first = every.reshape(batch, -1, one.shape[-1])[:, :, 0]
    first += numpy.arange(batch)[:, None]
    tensor.CopyFrom(numpy_helper.from_array(every, tensor.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("batch", type=int)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--size", type=int)
    arguments = parser.parse_args()
    model = onnx.load(str(arguments.model), load_external_data=False)
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for info in graph.input:
        extents = info.type.tensor_type.shape.dim
        if info.name in constants:
            continue
        extents[0].dim_value = arguments.batch
        if arguments.size and len(extents) == 4:
            extents[2].dim_value = extents[3].dim_value = arguments.size
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    for node in graph.node:
        if node.op_type == "Reshape" and node.input[1] in constants:
            reshape(constants[node.input[1]], arguments.batch)
        if node.op_type == "GatherND" and node.input[1] in constants:
            positions(constants[node.input[1]], arguments.batch, arguments.model.resolve().parent)
    for name in {entry.value for tensor in graph.initializer for entry in tensor.external_data if entry.key == "location"}:
        beside = arguments.out.parent / name
        if not beside.exists():
            data = (arguments.model.parent / name).resolve()
            try:
                os.link(data, beside)
            except OSError:
                shutil.copyfile(data, beside)
    onnx.save(model, str(arguments.out))


if __name__ == "__main__":
    main()
