// DynamicQuantizeLSTM of com.microsoft beside ONNX Runtime, which rounds data and states to bytes
// too: Hone is near what it gives, and as good as equal to an LSTM of the same weights in f32.

#include <sstream>

#include "gtest/gtest.h"

#include "tests/client/python.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

// Writes both models, the inputs and what ONNX Runtime gives for each.
constexpr char kMake[] = R"(
import sys, numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
folder, per_column, direction = sys.argv[1], sys.argv[2] == "columns", sys.argv[3]
rng = np.random.default_rng(5)
steps, batch, width, hidden = 7, 2, 24, 16
d = 2 if direction == "bidirectional" else 1
def narrow(terms, dtype):
    low, high = (-127, 128) if dtype == np.int8 else (0, 256)
    q = rng.integers(low, high, (d, terms, 4 * hidden)).astype(dtype)
    shape = (d, 4 * hidden) if per_column else (d,)
    scale = (rng.uniform(0.7, 1.3, shape) * (3 / terms) ** 0.5 / 127).astype(np.float32)
    zero = np.full(shape, 0 if dtype == np.int8 else 128, dtype)
    spread = (d, 1, shape[1] if per_column else 1)
    real = (q.astype(np.float32) - zero.reshape(spread).astype(np.float32)) * scale.reshape(spread)
    return q, scale, zero, np.ascontiguousarray(real.transpose(0, 2, 1))
dtype = np.int8 if per_column else np.uint8
w, r = narrow(width, dtype), narrow(hidden, dtype)
b = rng.uniform(-0.2, 0.2, (d, 8 * hidden)).astype(np.float32)
data = {"x": rng.uniform(-1, 1, (steps, batch, width)).astype(np.float32),
        "h": rng.uniform(-1, 1, (d, batch, hidden)).astype(np.float32),
        "c": rng.uniform(-1, 1, (d, batch, hidden)).astype(np.float32)}
def model(node, weights):
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    infos = [info(k, v.shape) for k, v in data.items()]
    state = data["h"].shape
    outputs = [info("y", (steps, d, batch, hidden)), info("y_h", state), info("y_c", state)]
    graph = helper.make_graph([node], "g", infos, outputs,
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 14),
                             helper.make_opsetid("com.microsoft", 1)])
how = dict(hidden_size=hidden, direction=direction)
quantised = model(helper.make_node("DynamicQuantizeLSTM",
    ["x", "w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"], ["y", "y_h", "y_c"],
    domain="com.microsoft", **how),
    {"w": w[0], "ws": w[1], "wz": w[2], "r": r[0], "rs": r[1], "rz": r[2], "b": b})
names = ["x", "w", "r", "b", "", "h", "c"]
full = model(helper.make_node("LSTM", names, ["y", "y_h", "y_c"], **how),
             {"w": w[3], "r": r[3], "b": b})
np.savez(folder + "/in.npz", **data)
onnx.save(quantised, folder + "/q.onnx")
options = ort.SessionOptions()  # without VNNI its products of u8 and s8 saturate otherwise
options.add_session_config_entry("session.x64quantprecision", "1")
for name, m in (("q", quantised), ("f", full)):
    session = ort.InferenceSession(m.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    np.savez(f"{folder}/{name}.npz", **dict(zip(("y", "y_h", "y_c"), session.run(None, data))))
)";

constexpr char kCompare[] = R"(
import sys, numpy as np
folder = sys.argv[1]
mine = np.load(folder + "/mine.npz")
for name in "qf":
    theirs = np.load(f"{folder}/{name}.npz")
    noise = {k: ((theirs[k] - mine[k]) ** 2).sum() for k in mine.files}
    print(min(10 * np.log10((theirs[k] ** 2).sum() / noise[k]) for k in noise))
)";

TEST(DynamicLstmTest, IsTheLstmOfItsWeightsAndNearOnnxRuntime) {
  HONE_SKIP_WITHOUT_PYTHON();
  for (const char* scales : {"whole", "columns"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      SCOPED_TRACE(std::string(scales) + " " + direction);
      const testing::TemporaryFolder folder;
      const auto made = testing::RunPython(kMake, {folder.path(), scales, direction});
      ASSERT_EQ(made.exit_code, 0) << made.err;
      const auto ran =
          testing::RunHone({"run", folder.Path("q.onnx"), "--inputs", folder.Path("in.npz"),
                            "--outputs", folder.Path("mine.npz"), "--threads", "1"});
      ASSERT_EQ(ran.exit_code, 0) << ran.err;
      const auto compared = testing::RunPython(kCompare, {folder.path()});
      ASSERT_EQ(compared.exit_code, 0) << compared.err;
      double quantised = 0, full = 0;
      ASSERT_TRUE(std::istringstream(compared.out) >> quantised >> full) << compared.out;
      EXPECT_GT(quantised, 40) << "dB from what ONNX Runtime gives";
      EXPECT_GT(full, 100) << "dB from an LSTM of these weights";
    }
  }
}

}  // namespace
}  // namespace hone::client
