#include "ir/checked_index.h"

#include <algorithm>
#include <optional>

#include "ir/expr.h"

namespace hone::ir {
namespace {

/// Stages between an index and the inputs it is computed from; a longer way is not followed.
constexpr int kMaxDepth = 8;

bool IsBinary(const Expr& e, BinaryOp op) {
  return e->kind == ExprKind::kBinary && e->binary() == op;
}

/// The value that CheckedIndexOf drew inside, with its extent.
struct Drawn {
  Expr value, raw;
  int64_t extent = 0;
};

std::optional<Drawn> TakeApart(const Expr& e) {
  if (!IsBinary(e, BinaryOp::kMax) || AsInt(e->args[1]) != 0) return std::nullopt;
  const Expr& least = e->args[0];
  if (!IsBinary(least, BinaryOp::kMin)) return std::nullopt;
  const std::optional<int64_t> last = AsInt(least->args[1]);
  const Expr& value = least->args[0];
  if (!last || value->kind != ExprKind::kSelect) return std::nullopt;
  const Expr& raw = value->args[2];
  const Expr same = Select(Lt(raw, Int(0)), raw + (*last + 1), raw);
  if (!Equal(same, value)) return std::nullopt;
  return Drawn{value, raw, *last + 1};
}

/// Loads of element-wise Stages replaced by what these compute; null when that does not lead to
/// inputs.
Expr FromInputs(const Workload& workload, const Expr& e, int depth) {
  bool found = true;
  const auto replace = [&](const Expr& node) -> Expr {
    if (node->kind != ExprKind::kLoad || !found) return nullptr;
    const int producer = workload.Producer(node->id);
    if (producer < 0) return nullptr;
    const Stage& stage = workload.stages[static_cast<size_t>(producer)];
    found = depth > 0 && stage.combiner == Combiner::kNone && stage.scan < 0 &&
            stage.results.size() == 1 && stage.store.empty();
    if (!found) return nullptr;
    const Expr body = FromInputs(workload, SubstituteVars(stage.body[0], node->args), depth - 1);
    found = body != nullptr;
    return body;
  };
  const Expr result = Rewrite(e, replace);
  return found ? result : nullptr;
}

/// The first input that an expression loads, or -1.
int FirstInput(const Workload& workload, const Expr& e) {
  int tensor = -1;
  Visit(e, [&](const ExprNode& node) {
    if (tensor < 0 && node.kind == ExprKind::kLoad &&
        workload.tensors[static_cast<size_t>(node.id)].kind == TensorKind::kInput)
      tensor = node.id;
  });
  return tensor;
}

bool IsElement(const Expr& raw) {
  const Expr& inside = raw->kind == ExprKind::kCast ? raw->args[0] : raw;
  return inside->kind == ExprKind::kLoad && IsInteger(inside->dtype);
}

class Finder {
 public:
  explicit Finder(const Workload& workload) : workload_(workload) {}

  /// Also whether there are others.
  std::vector<CheckedIndex> Find(bool* unchecked) {
    for (size_t s = 0; s < workload_.stages.size(); ++s) {
      if (workload_.stages[s].scan >= 0) continue;
      stage_ = static_cast<int>(s);
      for (const Expr& body : workload_.stages[s].body) Walk(body, nullptr);
    }
    *unchecked = unchecked_;
    return std::move(found_);
  }

 private:
  void Walk(const Expr& e, const Expr& condition) {
    if (e->kind == ExprKind::kSelect) {
      const auto both = [&](const Expr& more) { return condition ? And(condition, more) : more; };
      Walk(e->args[0], condition);
      Walk(e->args[1], both(e->args[0]));
      Walk(e->args[2], both(Unary(UnaryOp::kNot, e->args[0])));
      return;
    }
    if (e->kind == ExprKind::kLoad) {
      for (const Expr& index : e->args) Add(index, condition);
    }
    for (const Expr& arg : e->args) Walk(arg, condition);
  }

  void Add(const Expr& index, const Expr& condition) {
    const std::optional<Drawn> drawn = TakeApart(index);
    if (!drawn) return;
    CheckedIndex check{.stage = stage_, .extent = drawn->extent, .direct = IsElement(drawn->raw)};
    check.value = FromInputs(workload_, drawn->value, kMaxDepth);
    unchecked_ = unchecked_ || check.value == nullptr;
    if (check.value == nullptr) return;
    check.tensor = FirstInput(workload_, check.value);
    if (check.tensor < 0) return;
    if (condition != nullptr) {
      check.condition = FromInputs(workload_, condition, kMaxDepth);
      unchecked_ = unchecked_ || check.condition == nullptr;
      if (check.condition == nullptr) return;
    }
    check.direct = check.direct && Equal(check.value, drawn->value);
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const CheckedIndex& other) {
      const bool same = (check.condition == nullptr) == (other.condition == nullptr) &&
                        (check.condition == nullptr || Equal(check.condition, other.condition));
      return same && other.stage == stage_ && other.extent == check.extent &&
             Equal(other.value, check.value);
    });
    if (!known) found_.push_back(std::move(check));
  }

  const Workload& workload_;
  int stage_ = -1;
  std::vector<CheckedIndex> found_;
  bool unchecked_ = false;
};

}  // namespace

Expr CheckedIndexOf(const Expr& raw, int64_t extent) {
  const Expr counted = Select(Lt(raw, Int(0)), raw + extent, raw);
  return Max(Min(counted, Int(extent - 1)), Int(0));
}

std::vector<CheckedIndex> CheckedIndices(const Workload& workload) {
  bool unchecked = false;
  return Finder(workload).Find(&unchecked);
}

bool HasUncheckedIndex(const Workload& workload) {
  bool unchecked = false;
  Finder(workload).Find(&unchecked);
  return unchecked;
}

}  // namespace hone::ir
