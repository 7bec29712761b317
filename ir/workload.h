#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/expr.h"

namespace hone::ir {

/// What the values of an input may be; measuring and checking draw inputs inside it.
/// Floats and integers: low <= v < high (for integers the half-open range of indices).
struct ValueRange {
  double low = -1;
  double high = 1;
  bool operator==(const ValueRange&) const = default;
};

enum class TensorKind : uint8_t {
  kInput,      ///< given at run time
  kConstant,   ///< known when packaging (weights); not part of the Workload's identity
  kImmediate,  ///< at most kMaxImmediate values, part of the text; folds when its indices are
               ///< constant
  kStage,      ///< made by a Stage
};

inline constexpr int64_t kMaxImmediate = 4096;
inline constexpr int kMaxRank = 8;  ///< 6 for users; schedules add blocked dimensions

/// A dense row-major tensor. `shape` is in memory order.
struct Tensor {
  std::string name = {};  ///< canonical: x0, x1, … for inputs, constants, immediates; s0, s1, …
                          ///< (s0.1: second of a tuple)
  TensorKind kind = TensorKind::kInput;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape = {};
  bool output = false;    ///< also a result of the Workload (kStage only)
  ValueRange range = {};  ///< kInput only
  std::vector<double> immediate =
      {};  ///< kImmediate only: row-major values (integers exactly representable)

  int64_t NumElements() const;
  int64_t Bytes() const { return NumElements() * SizeOf(dtype); }
};

/// How a Stage's reduce axes are folded. The tuple combiners have two bodies and two results:
/// kArgMin/kArgMax (value, i64 index): smaller/larger value wins, ties by the smaller index
/// (kArgMaxLast, kArgMinLast: by the larger); kSumSumSq: (sum of v, sum of v²), body {v} twice as
/// {v, v*v}. Identities: 0, 1, +inf or the type's maximum, -inf or the type's minimum; for logical
/// any/all use kMax/kMin on bool.
enum class Combiner : uint8_t {
  kNone,
  kSum,
  kProduct,
  kMin,
  kMax,
  kArgMin,
  kArgMax,
  kArgMinLast,
  kArgMaxLast,
  kSumSumSq
};
constexpr bool IsArg(Combiner c) { return c >= Combiner::kArgMin && c <= Combiner::kArgMaxLast; }
constexpr bool IsTuple(Combiner c) { return c >= Combiner::kArgMin; }
std::string_view ToString(Combiner c);
std::optional<Combiner> ParseCombiner(std::string_view text);

/// One loop nest without order: for every point of the spatial axes, results[k][store] = combine
/// over the reduce axes of body[k]. Variables of `body`: Var(0..S-1) spatial, Var(S..S+R-1) reduce.
/// A Stage of a scan has the scan's sequential axis as spatial axis 0; it may load tensors of its
/// region at t - c, c >= 1, guarded by select(t >= c, load, initial), and the region's earlier
/// Stages at t.
struct Stage {
  std::string name = {};  ///< canonical: s0, s1, … in post-order
  std::vector<int64_t> spatial;
  std::vector<int64_t> reduce;
  Combiner combiner = Combiner::kNone;
  std::vector<Expr> body;    ///< one, or two for tuple combiners
  std::vector<int> results;  ///< tensor ids, one per body
  /// Where a point is stored: one index expression per dimension of the result over the spatial
  /// axes, an injective map; empty: the identity. Only outputs that no Stage reads may have one.
  std::vector<Expr> store = {};
  int scan = -1;  ///< region number, or -1

  int num_spatial() const { return static_cast<int>(spatial.size()); }
  int num_reduce() const { return static_cast<int>(reduce.size()); }
  int num_axes() const { return num_spatial() + num_reduce(); }
  int64_t Extent(int axis) const {
    return axis < num_spatial() ? spatial[axis] : reduce[axis - num_spatial()];
  }
};

/// One fused subgraph, unscheduled, with concrete shapes. A value type; identity is its
/// StructuralHash (ir/hash.h). `stages` are in an order where every Stage comes after those it
/// reads (scans aside).
struct Workload {
  std::vector<Tensor> tensors;
  std::vector<Stage> stages = {};

  /// Tensor ids by role, in tensor order: this is the order of buffers at the kernel's interface.
  std::vector<int> Inputs() const;
  std::vector<int> Constants() const;
  std::vector<int> Outputs() const;
  /// The Stage that makes a tensor, or -1.
  int Producer(int tensor) const;
  /// Ids of the Stages that load any result of `stage`, in order.
  std::vector<int> Readers(int stage) const;
  /// Stage or tensor number by canonical name, or -1.
  int FindStage(std::string_view name) const;
  int FindTensor(std::string_view name) const;
};

}  // namespace hone::ir
