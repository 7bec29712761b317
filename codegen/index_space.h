#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/affine.h"
#include "ir/expr.h"
#include "ir/index/interval.h"
#include "ir/index/sum_rules.h"

// Turns integer expressions over loop variables into affine sums and folds what their ranges
// decide, by the rules of ir/index. Knows nothing of LLVM: the emitter gives atoms their values.
namespace hone::codegen {

/// What an atom stands for. Operators take affine operands a, b, c of the atom; comparisons and
/// logic give 0 or 1.
enum class AtomKind : uint8_t {
  kVariable,  ///< loop variable of a serial, parallel or step loop
  kLane,      ///< 0, 1, ... across the lanes of the current vector
  kOpaque,    ///< any other value (loaded, or an operator not listed here)
  kGeZero,    ///< a >= 0
  kEqZero,    ///< a == 0
  kFloorDiv,  ///< a / b
  kFloorMod,
  kMul,
  kMin,
  kMax,
  kAnd,  ///< of 0/1 values, as kOr
  kOr,
  kSelect,  ///< a ? b : c
};

/// Depth of values that exist only where they were made (they depend on memory); larger than any
/// loop's.
inline constexpr int kDepthHere = 1 << 20;

struct Atom {
  AtomKind kind = AtomKind::kVariable;
  bool lane = false;  ///< differs between lanes
  int depth = 0;      ///< number of the innermost loop it needs; 0: function entry
  ir::Interval range = {0, 0};
  Affine a, b, c;
};

/// Gives affine form to subexpressions that IndexSpace does not know.
class OpaqueSource {
 public:
  virtual ~OpaqueSource() = default;
  /// An integer or bool expression that contains a load, a float or an operator not in AtomKind.
  virtual Affine Opaque(const ir::Expr& expr) = 0;
  /// Made of integer constants and loop variables only: no load, no float.
  virtual bool IsPure(const ir::Expr& expr) = 0;
};

/// All atoms of one function, and the values bound to loop variables. Not thread-safe.
class IndexSpace {
 public:
  IndexSpace(int num_vars, OpaqueSource* source)
      : env_(static_cast<size_t>(num_vars)), source_(source) {}

  /// From now on Var(var) is this sum.
  void Bind(int var, Affine value) { env_[static_cast<size_t>(var)] = std::move(value); }

  Affine NewVariable(int depth, ir::Interval range);
  /// The lane atom of vectors of `extent` lanes.
  Affine Lane(int64_t extent);
  Affine NewOpaque(bool lane, ir::Interval range);

  /// The sum of an integer or bool expression (bool: 0 or 1). Exact integers: narrower types that
  /// could wrap become opaque.
  Affine Decompose(const ir::Expr& expr);

  ir::Interval Bounds(const Affine& a) const;
  /// The innermost loop any term needs, lane atoms aside.
  int Depth(const Affine& a) const;
  bool DependsOnLane(const Affine& a) const;
  /// The sum in one lane; empty if a lane-dependent value is opaque.
  std::optional<Affine> AtLane(const Affine& a, int64_t lane);

  /// While it lives on the stack of facts, `condition` (a 0/1 sum) is known to be `truth`.
  void PushFacts(const Affine& condition, bool truth);
  size_t num_facts() const { return facts_.size(); }
  void PopFacts(size_t count) { facts_.Shrink(count); }

  const Atom& atom(int id) const { return atoms_[static_cast<size_t>(id)]; }
  int num_atoms() const { return static_cast<int>(atoms_.size()); }

 private:
  struct Rules;  // what ir/index/sum_rules.h asks of the atoms

  /// Bounds sharpened by what is known here.
  ir::Interval Known(const Affine& a) const;
  void AssumeNonNegative(const Affine& a);
  Affine Operator(AtomKind kind, Affine a, Affine b, Affine c, ir::Interval range);
  /// The same, with the range that `op` has.
  Affine Operator(AtomKind kind, ir::BinaryOp op, const Affine& a, const Affine& b);
  Affine DecomposeBinary(const ir::Expr& expr);
  /// Whether a - b wraps for no values of theirs. Data of 64 bits may have any.
  bool DifferenceFits(const Affine& a, const Affine& b) const;
  Affine DecomposeCast(const ir::Expr& expr);
  Affine FitsOrOpaque(Affine value, const ir::Expr& expr);
  Affine Apply(AtomKind kind, const Affine& a, const Affine& b, const Affine& c);

  Affine GeZero(const Affine& a);
  Affine EqZero(const Affine& a);
  Affine Mul(const Affine& a, const Affine& b);
  Affine MinMax(AtomKind kind, const Affine& a, const Affine& b);
  Affine Logic(AtomKind kind, const Affine& a, const Affine& b);
  Affine Choose(const Affine& condition, const Affine& a, const Affine& b);
  Affine Divide(AtomKind kind, const Affine& a, const Affine& b);
  Affine Joined(Affine sum);

  std::vector<Affine> env_;
  OpaqueSource* source_;
  std::vector<Atom> atoms_;
  std::unordered_multimap<uint64_t, int> interned_;
  ir::KnownSums<Affine> facts_;
};

}  // namespace hone::codegen
