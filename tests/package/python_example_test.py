"""Uses examples/python/hone.py on the hand-made package: python_example_test.py EXAMPLES PACKAGE LIBRARY"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, sys.argv[1])
import hone  # noqa: E402  pylint: disable=wrong-import-position


def main():
    package, library = sys.argv[2:4]
    try:
        hone.Model(package, library="libno_such_hone.so")
        raise AssertionError("no library is needed")
    except ImportError as error:
        assert "install libhone-runtime" in str(error), error
    model = hone.Model(package, threads=2, profile=True, library=library)
    assert [t.name for t in model.inputs] == ["x", "ids"], model.inputs
    assert [t.shape for t in model.outputs] == [(5, 6), (6,), (5, 2), (5, 2)], model.outputs
    assert model.threads == 2 and model.target == "cpu:avx2,threads=2"

    # The weights come out of the model itself: unit rows of x give the rows of w, since z is linear.
    ids = np.arange(5, dtype=np.int64)
    table = model.run({"x": np.zeros((5, 7), np.float32), "ids": ids})["z"]
    w = np.zeros((7, 6), np.float32)
    for k in range(7):
        x = np.zeros((5, 7), np.float32)
        x[0, k] = 1
        w[k] = model.run({"x": x, "ids": ids})["z"][0] - table[0]
    rng = np.random.default_rng(5)
    for _ in range(3):
        x = rng.integers(-8, 8, (5, 7)).astype(np.float32)
        # A transposed array is not contiguous: the example must copy it.
        got = model.run({"x": np.asfortranarray(x), "ids": ids})
        z = x @ w + table
        np.testing.assert_array_equal(got["z"], z)
        carried = np.ones(6, np.float32)
        for row in z:
            carried = np.float32(0.5) * np.roll(carried, -1) + row
        np.testing.assert_array_equal(got["last"], carried)
        np.testing.assert_array_equal(got["top"], -np.sort(-z, axis=1)[:, :2])
        np.testing.assert_array_equal(got["places"], np.argsort(-z, axis=1, kind="stable")[:, :2])
    steps = model.steps()
    assert len(steps) == 4 and all(time_ns >= 0 for _, _, time_ns in steps), steps

    for bad in ({"x": x}, {"x": x.astype(np.float64), "ids": ids}, {"x": x[:4], "ids": ids}):
        try:
            model.run(bad)
        except ValueError:
            continue
        raise AssertionError("wrong inputs were taken")
    try:
        model.run({"x": x, "ids": ids + 100})
        raise AssertionError("a bad index was taken")
    except hone.HoneError as error:
        assert error.status == 11 and "'ids'" in str(error), error

    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.npz")
        np.savez(given, x=x, ids=ids)
        subprocess.run([sys.executable, hone.__file__, package, given, made, library], check=True)
        with np.load(made) as outputs:
            np.testing.assert_array_equal(outputs["z"], z)
    print("all good")


main()
