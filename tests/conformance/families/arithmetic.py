"""Element-wise operators, casts and reductions."""
import numpy as np
from onnx import TensorProto, helper

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


FLOAT_UNARY = ["Abs", "Neg", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh",
               "Asinh", "Acosh", "Atanh", "Erf", "Sigmoid", "Floor", "Ceil", "Round", "Sign", "Reciprocal", "Relu",
               "Softplus", "Softsign", "HardSwish", "Mish", "Elu", "Selu", "Celu", "LeakyRelu", "ThresholdedRelu",
               "HardSigmoid", "Gelu", "IsNaN", "IsInf", "Identity"]
DOMAINS = {"Sqrt": (0, 4), "Log": (0.01, 9), "Asin": (-1, 1), "Acos": (-1, 1), "Acosh": (1, 6), "Atanh": (-0.95, 0.95),
           "Reciprocal": (0.2, 3), "Tan": (-1.4, 1.4)}


def unary(c):
    op = c.rng.choice(FLOAT_UNARY)
    low, high = DOMAINS.get(op, (-4, 4))
    x = c.input(c.floats(c.shape(), low, high, np.float32))
    attributes = {}
    if op == "Gelu":
        attributes["approximate"] = c.rng.choice(["none", "tanh"])
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu"):
        attributes["alpha"] = c.rng.uniform(0.1, 1.5)
    return [c.node(op, [x], **attributes)]


def integer_unary(c):
    op = c.rng.choice(["Abs", "Neg", "Sign", "BitwiseNot", "Relu"])
    kinds = {"Relu": [np.int8, np.int32], "BitwiseNot": [np.int8, np.uint8, np.int32, np.int64]}
    x = c.ints(c.shape(), 0, 100, c.rng.choice(kinds.get(op, [np.int8, np.int32, np.int64])))
    return [c.node(op, [c.input(x - x.dtype.type(40))])]


def extreme(c):
    """Integers from end to end of their type, which no difference of two of them fits."""
    op = c.rng.choice(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual", "Max", "Min", "Where", "Clip"])
    ends = np.iinfo(c.rng.choice([np.int32, np.int64, np.int64]))
    shape = c.shape(1, 3)
    values = [ends.min, ends.max, ends.min + 1, ends.max - 1, -1, 0, 1, 7]

    def drawn(shape):
        return np.array([c.rng.choice(values) for _ in range(int(np.prod(shape)))], ends.dtype).reshape(shape)

    a, b = c.input(drawn(shape)), c.either(drawn(c.broadcasts(shape)))
    if op == "Where":
        return [c.node("Where", [c.node("Less", [a, b]), a, b])]
    if op == "Clip":
        return [c.node("Clip", [a, c.constant(drawn([])), c.constant(drawn([]))])]
    return [c.node(op, [a, b])]


def binary(c):
    op = c.rng.choice(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu", "Greater", "Less", "Equal",
                       "GreaterOrEqual", "LessOrEqual", "Mod"])
    dtype = c.rng.choice([np.float32, np.float32, np.float32, np.int32, np.int64])
    shape = c.shape()
    left, right = list(shape), c.broadcasts(shape)
    if op != "PRelu" and c.rng.random() < 0.5:
        left, right = right, left
    if op in ("Pow", "PRelu"):
        dtype = np.float32
    if dtype == np.float32:
        a, b = c.floats(left, 0.1 if op == "Pow" else -3, 3), c.floats(right, -3, 3)
        if op in ("Div", "Mod"):
            b = np.where(np.abs(b) < 0.3, np.float32(0.7), b)
        if op == "Equal":
            a, b = np.round(a), np.round(b)
    else:
        a, b = c.ints(left, -9, 10, dtype), c.ints(right, -9, 10, dtype)
        if op in ("Div", "Mod"):
            b = np.where(b == 0, dtype(3), b)
    attributes = {"fmod": 1} if op == "Mod" and dtype == np.float32 else {}
    return [c.node(op, [c.input(a), c.either(b)], **attributes)]


def logic(c):
    shape = c.shape()
    if c.rng.random() < 0.5:
        op = c.rng.choice(["And", "Or", "Xor"])
        return [c.node(op, [c.input(c.ints(shape, 0, 2).astype(bool)),
                            c.input(c.ints(c.broadcasts(shape), 0, 2).astype(bool))])]
    if c.rng.random() < 0.5:
        condition = c.input(c.ints(c.broadcasts(shape), 0, 2).astype(bool))
        return [c.node("Where", [condition, c.input(c.floats(shape)), c.either(c.floats(c.broadcasts(shape)))])]
    dtype = c.rng.choice([np.uint8, np.uint32, np.uint64])
    values, shifts = c.ints(shape, 0, 200, dtype), c.ints(c.broadcasts(shape), 0, 7, dtype)
    return [c.node("BitShift", [c.input(values), c.input(shifts)], direction=c.rng.choice(["LEFT", "RIGHT"]))]


def variadic(c):
    shape = c.shape()
    op = c.rng.choice(["Sum", "Mean", "Max", "Min"])
    return [c.node(op, [c.input(c.floats(c.broadcasts(shape) if i else shape)) for i in range(c.rng.randint(1, 4))])]


NUMERIC = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
           np.uint64, np.bool_]


def cast(c):
    to = c.rng.choice(NUMERIC)
    source = c.rng.choice(NUMERIC)
    x = c.floats(c.shape(), 0, 100, np.float32).astype(source)
    return [c.node("Cast", [c.input(x)], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))]


def half(c):
    """Arithmetic in float16 and in bfloat16 between casts."""
    kind = c.rng.choice([HALF, TensorProto.BFLOAT16])
    x = c.node("Cast", [c.input(c.floats(c.shape(), 0.5, 3))], to=kind)
    if kind == TensorProto.BFLOAT16:
        return [c.node("Cast", [x], to=FLOAT)]
    # One operator: between two, fused, nothing is rounded.
    op = c.rng.choice(["Relu", "Neg", "Abs", "Sqrt", "Add", "Mul", "Max"])
    return [c.node(op, [x, x] if op in ("Add", "Mul", "Max") else [x])]


def brain(c):
    """One operator in bfloat16."""
    c.brain = True
    kind = c.rng.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "Relu", "Neg", "Abs", "Sqrt", "Exp", "Tanh",
                         "Sigmoid", "Where", "Concat", "MatMul", "Conv", "Softmax", "LayerNormalization", "ReduceSum",
                         "ReduceMax", "MaxPool", "AveragePool", "Gather", "Transpose", "CumSum"])

    def value(shape, source=c.input):
        return c.node("Cast", [source(c.floats(shape, 0.2, 2))], to=TensorProto.BFLOAT16)

    if kind == "MatMul":
        m, n, k = (c.rng.choice([1, 3, 8, 17, 33]) for _ in range(3))
        return [c.node(kind, [value([m, k]), value([k, n], c.either)])]
    if kind in ("Conv", "MaxPool", "AveragePool"):
        x = value([c.rng.choice([1, 2]), 3, 7, c.rng.choice([5, 8])])
        if kind == "Conv":
            return [c.node(kind, [x, value([c.rng.choice([2, 8]), 3, 3, 2], c.either)], pads=[1, 0, 1, 1])]
        return [c.node(kind, [x], kernel_shape=[3, 2], strides=[2, 1])]
    shape = c.shape(1, 4)
    x = value(shape)
    if kind in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        return [c.node(kind, [x, value(c.broadcasts(shape), c.either)])]
    if kind == "Where":
        return [c.node(kind, [c.input(c.ints(c.broadcasts(shape), 0, 2).astype(bool)), x, value(shape)])]
    if kind == "Concat":
        return [c.node(kind, [x, value(shape)], axis=c.axis(len(shape)))]
    if kind == "LayerNormalization":
        return [c.node(kind, [x, value(shape[-1:], c.either)])]
    if kind in ("ReduceSum", "ReduceMax"):
        return [c.node(kind, [x, c.constant(np.array(c.axes(len(shape)), np.int64))])]
    if kind == "Gather":
        return [c.node(kind, [x, c.either(c.ints([4], -shape[0], shape[0]))])]
    if kind == "CumSum":
        return [c.node(kind, [x, c.constant(np.array([c.axis(len(shape))], np.int64))])]
    return [c.node(kind, [x])]


def reduce(c):
    op = c.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                       "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"])
    shape = c.shape(1, 6)
    integer = op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd") and c.rng.random() < 0.3
    if integer:
        x = c.input(c.ints(shape, -2, 3, c.rng.choice([np.int32, np.int64])))
    else:
        low = 0.1 if op == "ReduceLogSum" else (0.8 if op == "ReduceProd" else -2)
        x = c.input(c.floats(shape, low, 1.2 if op == "ReduceProd" else 2))
    inputs, attributes = [x], {"keepdims": c.rng.randint(0, 1)}
    choice = c.rng.random()
    if choice < 0.75:
        inputs.append(c.constant(np.array(c.axes(len(shape)), np.int64)))
    elif choice < 0.9:
        attributes["noop_with_empty_axes"] = c.rng.randint(0, 1)
    return [c.node(op, inputs, **attributes)]


def arg_reduce(c):
    shape = c.shape(1, 5)
    if c.rng.random() < 0.3:  # long rows are expressed in another way
        shape = c.shape(0, 2) + [c.rng.choice([33, 64, 197])]
    x = c.floats(shape) if c.rng.random() < 0.5 else c.ints(shape, 0, 4).astype(np.float32)
    return [c.node(c.rng.choice(["ArgMax", "ArgMin"]), [c.input(x)], axis=c.axis(len(shape)),
                   keepdims=c.rng.randint(0, 1), select_last_index=c.rng.randint(0, 1))]


def softmax(c):
    shape = c.shape(1, 5)
    return [c.node(c.rng.choice(["Softmax", "LogSoftmax"]), [c.input(c.floats(shape, -5, 5))],
                   axis=c.axis(len(shape)))]


def cumsum(c):
    shape = c.shape(1, 4)
    axis = c.constant(np.array(c.axis(len(shape)), c.rng.choice([np.int32, np.int64])))
    return [c.node("CumSum", [c.input(c.floats(shape)), axis], exclusive=c.rng.randint(0, 1),
                   reverse=c.rng.randint(0, 1))]
