"""Models in narrow numbers for bench_peers.py, and how far their outputs are from those of f32.

Calibration and evaluation draw from NAME.inputs.npz (else from seeded values): each array keeps its values and gets
them in another order, so that ids stay ids, masks of ones stay masks and floats keep their distribution. The four
orders for calibration are not among those for evaluation.
"""
import math, pathlib

PER_CHANNEL_OPSET = 13         # the first whose DequantizeLinear has an axis
CALIBRATION, EVALUATION = range(100, 104), range(200, 204)     # seeds


def drawn(feeds, seed):
    import numpy as np
    rng = np.random.Generator(np.random.PCG64(seed))
    return {k: rng.permutation(v.reshape(-1)).reshape(v.shape) for k, v in feeds.items()}


class Reader:
    """What ONNX Runtime's quantiser asks for data."""
    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def quantised(model, scheme, feeds, folder):
    """The path of MODEL in int8: static (QDQ, u8 activations, s8 weights per channel) or dynamic."""
    import onnx, onnx.version_converter
    from onnxruntime import quantization as q
    folder = pathlib.Path(folder); folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{pathlib.Path(model).stem}.{scheme}.onnx"
    if out.exists(): return str(out)
    prepared = folder / f"{pathlib.Path(model).stem}.prepared.onnx"
    whole = folder / f"{pathlib.Path(model).stem}.whole.onnx"     # onnx refuses the links that the quantiser makes to weights beside a model
    onnx.save(onnx.load(str(model)), str(whole))
    q.shape_inference.quant_pre_process(str(whole), str(prepared), skip_symbolic_shape=True)
    whole.unlink()
    m = onnx.load(str(prepared))
    if next(o.version for o in m.opset_import if o.domain in ("", "ai.onnx")) < PER_CHANNEL_OPSET:
        onnx.save(onnx.version_converter.convert_version(m, PER_CHANNEL_OPSET), str(prepared), save_as_external_data=m.ByteSize() > 1 << 30)
    if scheme == "dynamic":
        q.quantize_dynamic(str(prepared), str(out), per_channel=True, weight_type=q.QuantType.QInt8)
    else:
        q.quantize_static(str(prepared), str(out), Reader(drawn(feeds, s) for s in CALIBRATION), quant_format=q.QuantFormat.QDQ, per_channel=True,
                          activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)
    prepared.unlink()
    return str(out)


def nncf_quantised(model, feeds, is_transformer, folder):
    """The path of an OpenVINO model with NNCF's post-training quantisation."""
    import openvino as ov
    out = pathlib.Path(folder) / f"{pathlib.Path(model).stem}.nncf.xml"
    if out.exists(): return str(out)
    import nncf
    m = ov.Core().read_model(model)
    data = nncf.Dataset([drawn(feeds, s) for s in CALIBRATION], lambda x: {i.any_name: x[next(n for n in i.names if n in x)] for i in m.inputs})
    ov.save_model(nncf.quantize(m, data, subset_size=len(CALIBRATION), model_type=nncf.ModelType.TRANSFORMER if is_transformer else None,
                                preset=nncf.QuantizationPreset.MIXED), out, compress_to_fp16=False)
    return str(out)


def is_transformer(model):
    import onnx
    ops = [n.op_type for n in onnx.load(str(model), load_external_data=False).graph.node]
    return ops.count("Softmax") >= 2 and ops.count("MatMul") >= 4


def accuracy(reference, outputs):
    """(SQNR in dB over the float outputs, share of rows whose largest value is at the same place) of pairs of output dictionaries."""
    import numpy as np
    signal = noise = 0.0
    same = rows = 0
    for want, got in zip(reference, outputs):
        for k, w in want.items():
            if not np.issubdtype(w.dtype, np.floating): continue
            w, g = w.astype(np.float64), np.asarray(got[k]).astype(np.float64)
            signal += float(np.sum(w * w)); noise += float(np.sum((w - g) ** 2))
            if w.ndim < 1 or w.shape[-1] < 2: continue
            at = np.argmax(w.reshape(-1, w.shape[-1]), -1) == np.argmax(g.reshape(-1, w.shape[-1]), -1)
            same += int(at.sum()); rows += at.size
    sqnr = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf
    return sqnr, same / rows if rows else None
