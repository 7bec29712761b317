"""Networks with bodies: If, Loop and Scan, as TorchScript's scripts and tf2onnx write them."""
import numpy as np
from onnx import TensorProto, helper

from .net import network


def body(name, nodes, inputs, outputs):
    """Inputs and outputs: (name, element type, extents)."""
    return helper.make_graph(nodes, name, [helper.make_tensor_value_info(*each) for each in inputs],
                             [helper.make_tensor_value_info(*each) for each in outputs])


F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@network(13)
def scripted_recurrence(n):
    """A counted Loop that reads step i of a sequence and of the enclosing graph's weights, and stacks its states."""
    steps, width = 6, 5
    n.input("sequence", [steps, 2, width])
    kernel, recurrent = n.uniform([width, width]), n.uniform([width, width])
    loop = body("step", [
        helper.make_node("Gather", ["sequence", "i"], ["now"], axis=0),
        helper.make_node("MatMul", ["now", kernel], ["own"]), helper.make_node("MatMul", ["h", recurrent], ["kept"]),
        helper.make_node("Add", ["own", "kept"], ["sum"]), helper.make_node("Tanh", ["sum"], ["next"]),
        helper.make_node("Identity", ["more"], ["more_out"]), helper.make_node("Neg", ["next"], ["mirrored"]),
    ], [("i", I64, []), ("more", BOOL, []), ("h", F32, [2, width])],
        [("more_out", BOOL, []), ("next", F32, [2, width]), ("mirrored", F32, [2, width])])
    h, stacked = n.op("Loop", n.const(steps), n.const(True), n.weight(np.zeros([2, width], np.float32)), outs=2,
                      body=loop)
    return [n.relu(h), n.op("Abs", stacked)]


@network(16, sets=3)
def newton_until_close(n):
    """A Loop that ends by what it computes, before its limit: which iterations count is known when it runs."""
    x = n.input("x", [4], low=0.5, high=9)
    loop = body("refine", [
        helper.make_node("Div", [x, "guess"], ["quotient"]), helper.make_node("Add", ["quotient", "guess"], ["sum"]),
        helper.make_node("Mul", ["sum", "half"], ["next"]), helper.make_node("Sub", ["next", "guess"], ["moved"]),
        helper.make_node("Abs", ["moved"], ["distance"]), helper.make_node("ReduceMax", ["distance"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "close"], ["more_out"]), helper.make_node("Add", ["count", "one"], ["counted"]),
    ], [("i", I64, []), ("more", BOOL, []), ("guess", F32, [4]), ("count", F32, [])],
        [("more_out", BOOL, []), ("next", F32, [4]), ("counted", F32, [])])
    for name, value in (("half", 0.5), ("close", 0.3), ("one", 1.0)):
        n.weight(np.float32(value), name)
    return list(n.op("Loop", n.const(12), n.const(True), n.weight(np.ones(4, np.float32)), n.const(0.0), outs=2,
                     body=loop))


@network(11, style="tf")
def scan_both_ways(n):
    """Scans along other axes than the first, one of them backwards, outputs stacked behind and in reverse."""
    batch, steps, width = 2, 5, 3
    x = n.input("x", [batch, steps, width])
    z = n.input("z", [steps, batch, width])
    step = body("step", [
        helper.make_node("Mul", ["kept", "decay"], ["faded"]), helper.make_node("Add", ["faded", "xi"], ["some"]),
        helper.make_node("Sub", ["some", "zi"], ["next"]), helper.make_node("Sigmoid", ["next"], ["gate"]),
        helper.make_node("ReduceSum", ["next"], ["total"], axes=[1], keepdims=0),
    ], [("kept", F32, [batch, width]), ("xi", F32, [batch, width]), ("zi", F32, [batch, width])],
        [("next", F32, [batch, width]), ("gate", F32, [batch, width]), ("total", F32, [batch])])
    n.weight(np.float32(0.7), "decay")
    return list(n.op("Scan", n.weight(np.zeros([batch, width], np.float32)), x, z, outs=3, body=step,
                     num_scan_inputs=2, scan_input_axes=[1, 0], scan_input_directions=[0, 1],
                     scan_output_axes=[1, -1], scan_output_directions=[0, 1]))


@network(17, sets=4)
def branch_by_value(n):
    """An If whose condition depends on what flows: both branches are computed, one is taken."""
    x = n.input("x", [3, 4])
    bright = n.op("Greater", n.op("ReduceMean", x, keepdims=0), n.const(0.0))
    up = body("up", [helper.make_node("Exp", [x], ["a"]), helper.make_node("Relu", [x], ["b"])], [],
              [("a", F32, [3, 4]), ("b", F32, [3, 4])])
    down = body("down", [helper.make_node("Neg", [x], ["c"]), helper.make_node("Mul", [x, x], ["d"])], [],
                [("c", F32, [3, 4]), ("d", F32, [3, 4])])
    return [n.op("Abs", each) for each in n.op("If", bright, outs=2, then_branch=up, else_branch=down)]


@network(13, sets=3)
def integer_countdown(n):
    """A Loop over integers that ends by what it counts, far before its limit of forty."""
    x = n.input("x", [], dtype=np.int64, low=1, high=30)
    loop = body("count", [
        helper.make_node("Sub", ["s", "one"], ["less"]), helper.make_node("Mul", ["s", "s"], ["square"]),
        helper.make_node("Add", ["sum", "square"], ["summed"]), helper.make_node("Greater", ["less", "none"], ["more_out"]),
    ], [("i", I64, []), ("more", BOOL, []), ("s", I64, []), ("sum", I64, [])],
        [("more_out", BOOL, []), ("less", I64, []), ("summed", I64, [])])
    n.weight(np.int64(1), "one")
    n.weight(np.int64(0), "none")
    _, total = n.op("Loop", n.const(40), n.const(True), x, n.const(0), outs=2, body=loop)
    return n.op("Cast", total, to=F32)


@network(14)
def iterations_of_rank_one(n):
    """A body that declares its iteration and its condition as [1], and names its input as a later node its result."""
    x = n.input("x", [2])
    loop = body("step", [
        helper.make_node("Cast", ["i"], ["number"], to=F32), helper.make_node("Add", ["later", "number"], ["next"]),
        helper.make_node("Identity", ["more"], ["more_out"]), helper.make_node("Neg", ["number"], ["stacked"]),
    ], [("i", I64, [1]), ("more", BOOL, [1]), ("later", F32, [2])],
        [("more_out", BOOL, [1]), ("next", F32, [2]), ("stacked", F32, [1])])
    last, stack = n.op("Loop", n.const([3]), n.const([True]), x, outs=2, body=loop)
    n.nodes.append(helper.make_node("Abs", [last], ["later"]))
    return ["later", n.relu(n.op("Neg", stack))]
