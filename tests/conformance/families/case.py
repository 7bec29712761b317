"""One random graph while it is drawn."""
import numpy as np
from onnx import helper, numpy_helper

EXTENTS = [1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17]


class Case:
    """One graph while it is drawn: inputs with values, constants, nodes."""

    def __init__(self, rng, opset):
        self.rng = rng
        self.np = np.random.default_rng(rng.getrandbits(32))
        self.opset = opset
        self.nodes, self.inputs, self.constants, self.values = [], [], [], {}
        self.counter = 0
        self.brain = False  # casts to bfloat16, in which ONNX Runtime computes nothing

    def name(self):
        self.counter += 1
        return f"v{self.counter}"

    def floats(self, shape, low=-2.0, high=2.0, dtype=np.float32):
        return self.np.uniform(low, high, shape).astype(dtype)

    def ints(self, shape, low, high, dtype=np.int64):
        return self.np.integers(low, high, shape).astype(dtype)

    def input(self, array):
        array = np.asarray(array)
        name = self.name()
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        self.values[name] = array
        return name

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def either(self, array):
        """A constant or an input, by chance."""
        return self.constant(array) if self.rng.random() < 0.5 else self.input(array)

    def node(self, op, inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def shape(self, low=0, high=6, limit=4000, extents=EXTENTS):
        while True:
            shape = [self.rng.choice(extents) for _ in range(self.rng.randint(low, high))]
            if np.prod(shape, dtype=np.int64) <= limit:
                return shape

    def broadcasts(self, shape):
        """A shape that broadcasts to `shape`."""
        part = shape[self.rng.randint(0, len(shape)):] if self.rng.random() < 0.5 else list(shape)
        return [1 if self.rng.random() < 0.3 else extent for extent in part]

    def axes(self, rank, least=1):
        count = self.rng.randint(least, rank)
        axes = self.rng.sample(range(rank), count)
        return [axis - rank if self.rng.random() < 0.3 else axis for axis in axes]

    def axis(self, rank):
        return self.rng.randrange(-rank, rank)
