#!/usr/bin/env python3
"""Write the operator cases of the pinned onnx package in the layout of libonnx-testdata.

    make_node_cases.py OUTDIR

The Debian package stops at opset 17; these go on to the newest. OUTDIR/NAME/model.onnx with
OUTDIR/NAME/test_data_set_0/{input,output}_N.pb. Cases whose values are no tensors are left out, and so are those
that the Debian package has. Needs the packages numpy and onnx of the Python index.
"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

PACKAGED = pathlib.Path("/usr/share/libonnx-testdata/data/node")


def tensors(values, infos):
    """The values as named TensorProtos, or None when one is a sequence or an optional."""
    result = []
    for value, info in zip(values, infos):
        if isinstance(value, (list, dict)) or value is None:
            return None
        if not isinstance(value, onnx.TensorProto):
            value = numpy_helper.from_array(np.asarray(value), info.name)
        value.name = info.name
        result.append(value)
    return result


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    warnings.simplefilter("ignore")
    written = 0
    for case in collect_testcases(None):
        if case.model is None or (PACKAGED / case.name).exists():
            continue
        inputs = tensors(case.data_sets[0][0], case.model.graph.input)
        outputs = tensors(case.data_sets[0][1], case.model.graph.output)
        if inputs is None or outputs is None:
            continue
        data = out / case.name / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (out / case.name / "model.onnx").write_bytes(case.model.SerializeToString())
        for kind, values in (("input", inputs), ("output", outputs)):
            for number, value in enumerate(values):
                (data / f"{kind}_{number}.pb").write_bytes(value.SerializeToString())
        written += 1
    print(f"{written} operator cases in {out}")


if __name__ == "__main__":
    main()
