#include "tests/schedule/random_workload.h"

#include <fmt/format.h>

#include <vector>

namespace hone::schedule {

namespace {

/// Declares tensors and Stages by number as the text form wants them.
class Writer {
 public:
  explicit Writer(Random& random) : r_(random) {}

  std::string Input(const std::string& type, const std::string& range = "range(-1,1)") {
    return Declare(fmt::format("{} input {}", type, range));
  }
  std::string Constant(const std::string& type) { return Declare(type + " constant"); }
  /// `right` after the "=", `what` between the type and it (" output", " scan 0").
  std::string Stage(const std::string& type, const std::string& what, const std::string& right) {
    std::string name = fmt::format("s{}", stages_++);
    body_ += fmt::format("{}: {}{} = {}\n", name, type, what, right);
    return name;
  }
  std::string Tuple(const std::string& type, const std::string& second, const std::string& what,
                    const std::string& right) {
    std::string name = fmt::format("s{}", stages_++);
    body_ +=
        fmt::format("{}: {}{}, {}.1: {}{} = {}\n", name, type, what, name, second, what, right);
    return name;
  }
  std::string Next() const { return fmt::format("s{}", stages_); }
  std::string Text() const { return "workload 1\n" + head_ + body_; }

  /// Half of them f32; `dtype` is what it was.
  std::string DrawType() {
    static const std::vector<std::string> kOthers = {"f64", "f16", "bf16", "i32"};
    return dtype = r_.Chance(0.5) ? "f32" : r_.Pick(kOthers);
  }

  int64_t Size(int64_t low, int64_t high) { return r_.Between(low, high); }
  /// An extent of a large image or a long sequence now and then.
  int64_t Long(int64_t low, int64_t high, int64_t longest) {
    return Size(low, r_.Chance(0.1) ? longest : high);
  }
  int64_t Images() {
    static const std::vector<int64_t> kImages = {1, 1, 1, 2, 3, 8};
    return r_.Pick(kImages);
  }
  bool Chance(double p) { return r_.Chance(p); }
  Random& random() { return r_; }

  std::string dtype = "f32";

 private:
  std::string Declare(const std::string& type) {
    std::string name = fmt::format("x{}", tensors_++);
    head_ += fmt::format("{}: {}\n", name, type);
    return name;
  }

  Random& r_;
  std::string head_, body_;
  int tensors_ = 0, stages_ = 0;
};

/// A constant of the type; integers truncate.
std::string Number(const std::string& type, double value) {
  if (type == "f32") return fmt::format("{:.1f}", value);
  return type == "i32" ? fmt::format("{}:i32", static_cast<int>(value))
                       : fmt::format("{:.1f}:{}", value, type);
}

/// A type and the one that sums of it have, as the operators express them: half precision is added
/// up in f32, and rounded when it is stored.
struct Types {
  std::string stored, sum;
  explicit Types(const std::string& type)
      : stored(type), sum(type == "f16" || type == "bf16" ? "f32" : type) {}
  std::string Widen(const std::string& e) const { return stored == sum ? e : sum + "(" + e + ")"; }
  std::string Round(const std::string& e) const {
    return stored == sum ? e : stored + "(" + e + ")";
  }
};

const char* RangeOf(const std::string& type) {
  return type == "i32" ? "range(-8,9)" : "range(-1,1)";
}

void Gemm(Writer& w) {
  const int64_t m = w.Size(1, 7), n = w.Size(2, 13), k = w.Size(1, 9);
  const Types t(w.DrawType());
  const auto product = [&](int64_t length, const std::string& a, const std::string& b) {
    return fmt::format("sum[r0:{}] ({} * {})", length, t.Widen(a + "[i0, r0]"),
                       t.Widen(b + "[r0, i1]"));
  };
  const std::string x = w.Input(fmt::format("{}[{},{}]", t.stored, m, k), RangeOf(t.stored));
  const std::string right = fmt::format("{}[{},{}]", t.stored, k, n);
  const std::string y = w.Chance(0.6) ? w.Constant(right) : w.Input(right, RangeOf(t.stored));
  const std::string b = w.Constant(fmt::format("{}[{}]", t.sum, n));
  const std::string type = fmt::format("{}[{},{}]", t.stored, m, n);
  const std::string mm = w.Stage(fmt::format("{}[{},{}]", t.sum, m, n), "", product(k, x, y));
  const std::string sum =
      w.Stage(type, w.Chance(0.25) ? " output" : "", t.Round(mm + "[i0, i1] + " + b + "[i1]"));
  if (w.Chance(0.5)) {
    w.Stage(type, " output", fmt::format("max({}[i0, i1], {})", sum, Number(t.stored, 0)));
    return;
  }
  // A second product: rows joined.
  const int64_t p = w.Size(1, 6);
  const std::string z = w.Constant(fmt::format("{}[{},{}]", t.stored, n, p));
  const std::string second = w.Stage(fmt::format("{}[{},{}]", t.sum, m, p), "", product(n, sum, z));
  w.Stage(fmt::format("{}[{},{}]", t.stored, p, m), " output",
          t.Round(second + "[i1, i0] * " + Number(t.sum, 1.5)));
}

void BatchedGemm(Writer& w) {
  const int64_t b = w.Images(), m = w.Long(1, 5, 70), n = w.Size(2, 9), k = w.Size(2, 6);
  const std::string x = w.Input(fmt::format("f32[{},{},{}]", b, m, k));
  const std::string y = w.Input(fmt::format("f32[{},{},{}]", b, n, k));
  const std::string t =
      w.Stage(fmt::format("f32[{},{},{}]", b, k, n), "", fmt::format("{}[i0, i2, i1]", y));
  const std::string mm =
      w.Stage(fmt::format("f32[{},{},{}]", b, m, n), "",
              fmt::format("sum[r0:{}] ({}[i0, i1, r0] * {}[i0, r0, i2])", k, x, t));
  w.Stage(fmt::format("f32[{},{},{}]", m, b, n), " output",
          fmt::format("{}[i1, i0, i2] + 1.0", mm));
}

void Requantise(Writer& w) {
  const int64_t m = w.Size(1, 5), n = w.Size(2, 9), k = w.Size(1, 9);
  const std::string x = w.Input(fmt::format("u8[{},{}]", m, k), "range(0,256)");
  const std::string y = w.Constant(fmt::format("i8[{},{}]", k, n));
  const std::string mm =
      w.Stage(fmt::format("i32[{},{}]", m, n), "",
              fmt::format("sum[r0:{}] (i32({}[i0, r0]) * i32({}[r0, i1]))", k, x, y));
  const std::string rows =
      w.Stage(fmt::format("i32[{}]", m), "", fmt::format("sum[r0:{}] (i32({}[i0, r0]))", k, x));
  const std::string columns =
      w.Stage(fmt::format("i32[{}]", n), "", fmt::format("sum[r0:{}] (i32({}[r0, i0]))", k, y));
  w.Stage(fmt::format("i8[{},{}]", m, n), " output",
          fmt::format(
              "i8(max(min(({}[i0, i1] - {}[i0] * 3:i32 + {}[i1]) >> 6:i32, 127:i32), -128:i32))",
              mm, rows, columns));
}

void Convolution(Writer& w, int64_t kernel) {
  const int64_t images = w.Images(), h = w.Size(2, 6), x_size = w.Long(2, 6, 40), ic = w.Size(1, 3),
                oc = w.Size(1, 9);
  const int64_t pad = kernel == 1 ? 0 : w.Size(0, 1);
  const int64_t stride = kernel == 3 && w.Chance(0.6) ? 1 : w.Size(1, 2);
  const int64_t in_h = (h - 1) * stride + kernel - 2 * pad,
                in_w = (x_size - 1) * stride + kernel - 2 * pad;
  if (in_h < 1 || in_w < 1) return Convolution(w, kernel);
  const std::string x = w.Input(fmt::format("f32[{},{},{},{}]", images, in_h, in_w, ic));
  const std::string k = w.Constant(fmt::format("f32[{},{},{},{}]", oc, ic, kernel, kernel));
  const std::string b = w.Constant(fmt::format("f32[{}]", oc));
  std::string padded = x;
  if (pad > 0) {
    padded = w.Stage(
        fmt::format("f32[{},{},{},{}]", images, in_h + 2, in_w + 2, ic), "",
        fmt::format(
            "select(i1 >= 1 & i1 < {} & i2 >= 1 & i2 < {}, {}[i0, i1 - 1, i2 - 1, i3], 0.0)",
            in_h + 1, in_w + 1, x));
  }
  const std::string out = fmt::format("f32[{},{},{},{}]", images, h, x_size, oc);
  const std::string at =
      stride == 1 ? "i1 + r0, i2 + r1" : fmt::format("i1 * {} + r0, i2 * {} + r1", stride, stride);
  const std::string conv =
      w.Stage(out, "",
              fmt::format("sum[r0:{},r1:{},r2:{}] ({}[i0, {}, r2] * {}[i3, r2, r0, r1])", kernel,
                          kernel, ic, padded, at, k));
  const std::string biased = w.Stage(out, w.Chance(0.3) ? " output" : "",
                                     fmt::format("{}[i0, i1, i2, i3] + {}[i3]", conv, b));
  w.Stage(out, " output", fmt::format("max({}[i0, i1, i2, i3], 0.0)", biased));
}

void Window(Writer& w) {
  const int64_t images = w.Images(), h = w.Size(1, 5), x_size = w.Long(1, 5, 60), c = w.Size(1, 9),
                k = w.Size(2, 3);
  const bool pool = w.Chance(0.5);
  const Types t(w.DrawType());
  const std::string least = t.stored == "f32"   ? "-inf"
                            : t.stored == "i32" ? "-2147483648:i32"
                                                : "-inf:" + t.stored;
  const int64_t bottom = h + k - 1, right = x_size + k - 1;
  const std::string x = w.Input(fmt::format("{}[{},{},{},{}]", t.stored, images, bottom, right, c),
                                RangeOf(t.stored));
  const std::string padded = w.Stage(
      fmt::format("{}[{},{},{},{}]", t.stored, images, bottom + 2, right + 2, c), "",
      fmt::format("select(i1 >= 1 & i1 <= {} & i2 >= 1 & i2 <= {}, {}[i0, i1 - 1, i2 - 1, i3], {})",
                  bottom, right, x, pool ? least : Number(t.stored, 0)));
  std::string result;
  const std::string& made = pool ? t.stored : t.sum;
  const std::string out = fmt::format("{}[{},{},{},{}]", made, images, h + 2, x_size + 2, c);
  const std::string taps = fmt::format("[r0:{},r1:{}]", k, k);
  const std::string tap = padded + "[i0, i1 + r0, i2 + r1, i3]";
  if (pool) {
    result = w.Stage(out, "", fmt::format("max{} ({})", taps, tap));
  } else {
    const std::string f = w.Constant(fmt::format("{}[{},{},{}]", t.stored, c, k, k));
    result = w.Stage(
        out, "", fmt::format("sum{} ({} * {})", taps, t.Widen(tap), t.Widen(f + "[i3, r0, r1]")));
  }
  const std::string doubled = fmt::format("{}[i0, i2, i3, i1] * {}", result, Number(made, 2));
  w.Stage(fmt::format("{}[{},{},{},{}]", t.stored, images, c, h + 2, x_size + 2), " output",
          pool ? doubled : t.Round(doubled));
}

void Softmax(Writer& w) {
  const int64_t m = w.Size(1, 5), n = w.Long(2, 19, 200);
  const std::string x = w.Input(fmt::format("f32[{},{}]", m, n), "range(-4,4)");
  const std::string type = fmt::format("f32[{},{}]", m, n), row = fmt::format("f32[{}]", m);
  const std::string best = w.Stage(row, "", fmt::format("max[r0:{}] ({}[i0, r0])", n, x));
  const std::string e = w.Stage(type, "", fmt::format("exp({}[i0, i1] - {}[i0])", x, best));
  const std::string sum =
      w.Stage(row, w.Chance(0.2) ? " output" : "", fmt::format("sum[r0:{}] ({}[i0, r0])", n, e));
  w.Stage(type, " output", fmt::format("{}[i0, i1] / {}[i0]", e, sum));
}

/// Rows that attend to keys: scaled or masked scores (some rows may be masked whole), softmax
/// divided before or after the second product.
void Attention(Writer& w) {
  const int64_t h = w.Images(), q = w.Size(1, 4), k = w.Long(2, 9, 140), d = w.Size(1, 4),
                dv = w.Size(1, 7);
  const bool turned = w.Chance(0.5);
  const std::string x = w.Input(fmt::format("f32[{},{},{}]", h, q, d));
  const std::string y = w.Input(turned ? fmt::format("f32[{},{},{}]", h, d, k)
                                       : fmt::format("f32[{},{},{}]", h, k, d));
  const std::string z = w.Input(fmt::format("f32[{},{},{}]", h, k, dv));
  const std::string type = fmt::format("f32[{},{},{}]", h, q, k),
                    row = fmt::format("f32[{},{}]", h, q),
                    out = fmt::format("f32[{},{},{}]", h, q, dv);
  std::string s = w.Stage(type, "",
                          fmt::format("sum[r0:{}] ({}[i0, i1, r0] * {}[i0, {}])", d, x, y,
                                      turned ? "r0, i2" : "i2, r0"));
  if (w.Chance(0.6)) s = w.Stage(type, "", fmt::format("{}[i0, i1, i2] * 0.5", s));
  if (w.Chance(0.6)) {
    const std::string m = w.Input(fmt::format("f32[{},{}]", q, k), "range(0,1)");
    s = w.Stage(type, "",
                w.Chance(0.5)
                    ? fmt::format("{}[i0, i1, i2] + {}[i1, i2]", s, m)
                    : fmt::format("select({}[i1, i2] < 0.7, {}[i0, i1, i2], -inf)", m, s));
  }
  const std::string best = w.Stage(row, "", fmt::format("max[r0:{}] ({}[i0, i1, r0])", k, s));
  const std::string e = w.Stage(type, "", fmt::format("exp({}[i0, i1, i2] - {}[i0, i1])", s, best));
  const std::string sum = w.Stage(row, "", fmt::format("sum[r0:{}] ({}[i0, i1, r0])", k, e));
  const bool before = w.Chance(0.6);
  const std::string p =
      before ? w.Stage(type, "", fmt::format("{}[i0, i1, i2] * (1.0 / {}[i0, i1])", e, sum)) : e;
  const bool last = before && w.Chance(0.4);
  const std::string o =
      w.Stage(out, last ? " output" : "",
              fmt::format("sum[r0:{}] ({}[i0, i1, r0] * {}[i0, r0, i2])", k, p, z));
  if (last) return;
  w.Stage(fmt::format("f32[{},{},{}]", q, h, dv), " output",
          before ? fmt::format("{}[i1, i0, i2] + 1.0", o)
                 : fmt::format("{}[i1, i0, i2] / {}[i1, i0]", o, sum));
}

void LayerNorm(Writer& w) {
  const int64_t m = w.Size(1, 5), n = w.Long(2, 13, 150);
  const std::string type = fmt::format("f32[{},{}]", m, n);
  const std::string x = w.Input(type), y = w.Input(type), g = w.Constant(fmt::format("f32[{}]", n));
  const std::string sum =
      w.Stage(type, w.Chance(0.4) ? " output" : "", fmt::format("{}[i0, i1] + {}[i0, i1]", x, y));
  const std::string row = fmt::format("f32[{}]", m);
  const std::string s = w.Tuple(
      row, row, "",
      fmt::format("sum_sumsq[r0:{}] ({}[i0, r0], {}[i0, r0] * {}[i0, r0])", n, sum, sum, sum));
  w.Stage(type, " output",
          fmt::format("({}[i0, i1] - {}[i0] / {}.0) * rsqrt({}.1[i0] / {}.0 - {}[i0] / {}.0 * "
                      "({}[i0] / {}.0) + 1.0) * {}[i1]",
                      sum, s, n, s, n, s, n, s, n, g));
}

void ArgReduce(Writer& w) {
  const int64_t m = w.Size(1, 6), n = w.Size(2, 9);
  const std::string x = w.Input(fmt::format("i32[{},{}]", m, n), "range(-4,4)");
  const std::string y =
      w.Stage(fmt::format("i32[{},{}]", m, n), "", fmt::format("abs({}[i0, i1])", x));
  const char* kinds[] = {"argmax", "argmin", "argmax_last", "argmin_last"};
  const std::string a =
      w.Tuple(fmt::format("i32[{}]", m), fmt::format("i64[{}]", m), w.Chance(0.3) ? " output" : "",
              fmt::format("{}[r0:{}] ({}[i0, r0], r0)", kinds[w.random().Below(4)], n, y));
  w.Stage(fmt::format("i32[{}]", m), " output",
          fmt::format("{}[i0] * 2:i32 + i32({}.1[i0])", a, a));
}

void Elementwise(Writer& w) {
  const int64_t a = w.Size(1, 5), b = w.Size(1, 6), c = w.Size(1, 9);
  const std::string t = w.DrawType();
  const std::string type = fmt::format("{}[{},{},{}]", t, a, b, c);
  const std::string x = w.Input(type, RangeOf(t)),
                    y = w.Input(fmt::format("{}[{},{}]", t, a, c), RangeOf(t));
  std::string last = w.Stage(type, "", fmt::format("{}[i0, i1, i2] * {}[i0, i2]", x, y));
  const int64_t length = w.Size(1, 3);
  for (int64_t k = 0; k < length; ++k) {
    const std::string bodies[] = {"max({0}[i0, i1, i2], " + Number(t, 0) + ")",
                                  "{0}[i0, i1, i2] + {1}[i0, i1, i2]",
                                  std::string(t == "i32" ? "neg" : "tanh") + "({0}[i0, i1, i2])",
                                  "{0}[i0, i1, i2] * {0}[i0, i1, i2]",
                                  "select(i1 >= 1, {0}[i0, i1 - 1, i2], " + Number(t, 1.5) + ")"};
    last = w.Stage(type, w.Chance(0.25) ? " output" : "",
                   fmt::format(fmt::runtime(bodies[w.random().Below(5)]), last, x));
  }
  if (w.Chance(0.3)) {
    w.Stage(type, " output", fmt::format("abs({}[i0, i1, i2])", last));
  } else if (w.Chance(0.5)) {
    w.Stage(fmt::format("{}[{},{},{}]", t, c, a, b), " output",
            fmt::format("{}[i1, i2, i0] - {}", last, Number(t, 1)));
  } else {
    w.Stage(fmt::format("{}[{},{}]", t, a * b, c), " output",
            fmt::format("{}[i0 // {}, i0 % {}, i1] - {}", last, b, b, Number(t, 1)));
  }
}

/// Slices, gathers, concatenations, store maps.
void Indexing(Writer& w) {
  const int64_t a = w.Size(2, 6), b = w.Size(2, 7), n = w.Size(1, 6);
  const std::string x = w.Input(fmt::format("f32[{},{}]", a, b));
  const std::string scaled =
      w.Stage(fmt::format("f32[{},{}]", a, b), "", fmt::format("{}[i0, i1] * 3.0", x));
  if (w.Chance(0.4)) {
    const std::string i = w.Input(fmt::format("i64[{}]", n), fmt::format("range(0,{})", a));
    const std::string g = w.Stage(fmt::format("f32[{},{}]", n, b), "",
                                  fmt::format("{}[{}[i0], i1] + 1.0", scaled, i));
    w.Stage(fmt::format("f32[{},{}]", n, b), " output", fmt::format("{}[i0, {} - i1]", g, b - 1));
  } else if (w.Chance(0.5)) {
    const std::string y = w.Input(fmt::format("f32[{},{}]", n, b));
    const std::string c =
        w.Stage(fmt::format("f32[{},{}]", a + n, b), "",
                fmt::format("select(i0 < {}, {}[i0, i1], {}[i0 - {}, i1])", a, scaled, y, a));
    w.Stage(fmt::format("f32[{},{}]", a + n, (b + 1) / 2), " output",
            fmt::format("{}[i0, i1 * 2] + 0.5", c));
  } else {
    // Depth to space: the point (i0, i1, i2) is stored at [i0, i1 * 2 + i2].
    const std::string c =
        w.Stage(fmt::format("f32[{},{},2]", a, b), "", fmt::format("{}[i0, i1] + f32(i2)", scaled));
    w.Stage(fmt::format("f32[{},{}]", b * 2, a),
            fmt::format(" output over [i0:{},i1:{},i2:2] at [i1 * 2 + i2, i0]", a, b),
            fmt::format("{}[i0, i1, i2] * 2.0", c));
  }
}

void Scan(Writer& w) {
  const int64_t t = w.Long(1, 5, 60), b = w.Images(), n = w.Size(1, 6);
  const std::string x = w.Input(fmt::format("f32[{},{},{}]", t, b, n));
  const std::string type = fmt::format("f32[{},{},{}]", t, b, n);
  const std::string scaled = w.Stage(type, "", fmt::format("{}[i0, i1, i2] * 0.5", x));
  std::string state;
  if (w.Chance(0.35)) {
    state = w.Next();
    w.Stage(
        type, w.Chance(0.5) ? " output scan 0" : " scan 0",
        fmt::format("{}[i0, i1, i2] + select(i0 >= 1, {}[i0 - 1, i1, i2], 0.0)", scaled, state));
  } else if (w.Chance(0.5)) {
    // h[t] = tanh(x[t] + h[t-1] · R), the product in a Stage of its own.
    const std::string r = w.Constant(fmt::format("f32[{},{}]", n, n));
    const int first = std::stoi(w.Next().substr(1));
    state = fmt::format("s{}", first + 1);
    const std::string p =
        w.Stage(type, " scan 0",
                fmt::format("sum[r0:{}] (select(i0 >= 1, {}[i0 - 1, i1, r0], 0.25) * {}[r0, i2])",
                            n, state, r));
    w.Stage(type, w.Chance(0.5) ? " output scan 0" : " scan 0",
            fmt::format("tanh({}[i0, i1, i2] + {}[i0, i1, i2] * 0.0625)", scaled, p));
  } else {
    // The product of the state in the Stage itself.
    state = w.Next();
    w.Stage(type, " scan 0",
            fmt::format("sum[r0:{}] (select(i0 >= 1, {}[i0 - 1, i1, r0], {}[0, i1, r0]) * 0.25)", n,
                        state, scaled));
  }
  w.Stage(fmt::format("f32[{},{}]", b, n), " output",
          fmt::format("{}[{}, i0, i1] + 1.0", state, t - 1));
}

void SplitSum(Writer& w) {
  const int64_t m = w.Size(1, 4), k = w.Size(5, 23), n = w.Size(1, 5);
  const std::string x = w.Input(fmt::format("f32[{},{}]", m, k)),
                    y = w.Constant(fmt::format("f32[{},{}]", k, n));
  const char* kinds[] = {"sum", "max", "min", "product"};
  const std::string scaled =
      w.Stage(fmt::format("f32[{},{}]", m, k), "", fmt::format("{}[i0, i1] + 0.5", x));
  const std::string s = w.Stage(
      fmt::format("f32[{},{}]", m, n), "",
      fmt::format("{}[r0:{}] ({}[i0, r0] * {}[r0, i1])", kinds[w.random().Below(4)], k, scaled, y));
  w.Stage(fmt::format("f32[{},{}]", m, n), " output", fmt::format("{}[i0, i1] * 2.0", s));
}

}  // namespace

RandomWorkload MakeWorkload(Random& random, const std::string& family) {
  static const std::vector<std::string> kFamilies = {
      "gemm",        "gemm",        "batched",  "requantise", "conv3x3",    "conv3x3",
      "conv",        "window",      "softmax",  "attention",  "layer_norm", "argreduce",
      "elementwise", "elementwise", "indexing", "scan",       "scan",       "split_sum"};
  RandomWorkload out;
  out.family = family.empty() ? random.Pick(kFamilies) : family;
  Writer w(random);
  if (out.family == "gemm") Gemm(w);
  if (out.family == "batched") BatchedGemm(w);
  if (out.family == "requantise") Requantise(w);
  if (out.family == "conv3x3") Convolution(w, 3);
  if (out.family == "conv") Convolution(w, random.Chance(0.5) ? 1 : 2);
  if (out.family == "window") Window(w);
  if (out.family == "softmax") Softmax(w);
  if (out.family == "attention") Attention(w);
  if (out.family == "layer_norm") LayerNorm(w);
  if (out.family == "argreduce") ArgReduce(w);
  if (out.family == "elementwise") Elementwise(w);
  if (out.family == "indexing") Indexing(w);
  if (out.family == "scan") Scan(w);
  if (out.family == "split_sum") SplitSum(w);
  out.dtype = w.dtype;
  out.text = w.Text();
  return out;
}

}  // namespace hone::schedule
