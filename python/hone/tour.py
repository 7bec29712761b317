"""A tour in a minute, without a download: python -m hone.tour [FOLDER] [--seconds 30]

Writes a small network, tunes it, compiles it, and tells the next lines to type. All of it stays in
FOLDER (default: hone-tour here), the log too.
"""
from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np

import hone


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hone.tour", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("hone-tour"))
    parser.add_argument("--seconds", type=float, default=30, help="how long to tune (30)")
    args = parser.parse_args()
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        show(args.folder, args.seconds)
    except OSError as error:
        print(f"hone.tour: error: {error}", file=sys.stderr)
        return 9
    except hone.HoneError as error:
        print(f"hone.tour: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def show(folder: pathlib.Path, seconds: float) -> None:
    network, log = str(folder / "squeezenet.onnx"), str(folder / "tune.db")
    hone.zoo("squeezenet", network)
    print(f"{network}: a network of 1.2 million weights that classifies pictures")
    print(f"tuning it for {seconds:g} s into {log}; Ctrl-C ends that early, and keeps what was found")
    session = hone.tune(network, seconds=seconds, log=log)
    print(f"\n{session.verdict}\n")
    model = session.compile()
    model.save(folder / "squeezenet.hone")
    x = np.random.default_rng(0).random(model.inputs[0].shape, np.float32)
    row = model.bench(seconds=0.5)[0]
    print(f"{model}\na run: {row['median_us'] / 1000:.3f} ms on {model.threads} threads; "
          f"class {int(np.argmax(model(x)))} for a picture of noise\n")
    print("Next, in Python:\n\n"
          "    import hone, numpy as np\n"
          f"    model = hone.load({str(folder / 'squeezenet.hone')!r})\n"
          "    y = model(np.zeros((1, 3, 224, 224), np.float32))\n"
          "    print(model.profile())\n"
          "    hone.tune('yours.onnx', seconds=60).compile().save('yours.hone')\n\n"
          "on the command line:\n\n"
          f"    hone bench {folder / 'squeezenet.hone'} --profile\n"
          "    hone tune yours.onnx --seconds 60 && hone compile yours.onnx\n")


if __name__ == "__main__":
    sys.exit(main())
