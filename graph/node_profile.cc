#include "graph/node_profile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/index_map.h"
#include "graph/op.h"
#include "graph/workload_rewrite.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;
using ir::ExprNode;
using ir::Stage;
using ir::UnaryOp;
using ir::Workload;

std::vector<int64_t> ExtentsOf(const Stage& stage) {
  std::vector<int64_t> extents = stage.spatial;
  extents.insert(extents.end(), stage.reduce.begin(), stage.reduce.end());
  return extents;
}

int64_t Product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

/// Walks a body's data part (not indices of loads) and adds up what it costs.
class CostOfBody {
 public:
  explicit CostOfBody(NodeProfile& profile) : profile_(profile) {}

  void Add(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kLoad:
        sources_.insert(e->id);
        for (const Expr& index : e->args) AddIndex(index);
        return;
      case ExprKind::kCast: ++profile_.flops; break;
      case ExprKind::kUnary: AddUnary(e->unary()); break;
      case ExprKind::kBinary: AddBinary(*e); break;
      case ExprKind::kSelect:
        // The condition of a border is arithmetic on axes, which costs no flop; one on data does.
        if (HasLoad(e->args[0])) {
          ++profile_.flops;
          Add(e->args[0]);
        }
        Add(e->args[1]);
        Add(e->args[2]);
        return;
      case ExprKind::kConst:
      case ExprKind::kVar: return;
    }
    for (const Expr& arg : e->args) Add(arg);
  }

  // Without those of indices.
  static int InstructionsOf(const Expr& e) {
    constexpr int kPolynomial = 20;  // of an exp, erf or tanh
    int count = 0;
    switch (e->kind) {
      case ExprKind::kLoad:
      case ExprKind::kConst:
      case ExprKind::kVar: return 0;
      case ExprKind::kUnary: {
        NodeProfile one;
        CostOfBody(one).AddUnary(e->unary());
        count = one.expensive ? kPolynomial : 1;
        break;
      }
      case ExprKind::kBinary: count = e->binary() == BinaryOp::kPow ? 2 * kPolynomial : 1; break;
      case ExprKind::kCast:
      case ExprKind::kSelect: count = 1; break;
    }
    for (const Expr& arg : e->args) count += InstructionsOf(arg);
    return count;
  }

  int num_sources() const { return static_cast<int>(sources_.size()); }
  bool arithmetic() const { return arithmetic_ || profile_.flops > 0; }

 private:
  static bool HasLoad(const Expr& e) {
    bool found = false;
    ir::Visit(e, [&](const ExprNode& node) { found = found || node.kind == ExprKind::kLoad; });
    return found;
  }

  void AddIndex(const Expr& index) {
    profile_.data_dependent = profile_.data_dependent || HasLoad(index);
  }

  void AddUnary(UnaryOp op) {
    arithmetic_ = true;
    switch (op) {
      case UnaryOp::kNeg:
      case UnaryOp::kAbs:
      case UnaryOp::kNot:
      case UnaryOp::kFloor:
      case UnaryOp::kCeil:
      case UnaryOp::kRound:
      case UnaryOp::kTrunc:
      case UnaryOp::kSign:
      case UnaryOp::kIsNan:
      case UnaryOp::kIsInf: ++profile_.flops; return;
      default: profile_.expensive = true; ++profile_.flops;
    }
  }

  void AddBinary(const ExprNode& e) {
    arithmetic_ = true;
    switch (e.binary()) {
      case BinaryOp::kMin:
      case BinaryOp::kMax: return;
      case BinaryOp::kDiv:
      case BinaryOp::kMod:
      case BinaryOp::kTruncDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kPow: profile_.expensive = true; break;
      default: break;
    }
    ++profile_.flops;
  }

  NodeProfile& profile_;
  std::set<int> sources_;
  bool arithmetic_ = false;
};

struct LoadOf {
  int tensor;
  std::vector<Expr> indices;
};

std::vector<LoadOf> LoadsOf(const Stage& stage) {
  std::vector<LoadOf> loads;
  for (const Expr& body : stage.body) {
    ir::Visit(body, [&](const ExprNode& node) {
      if (node.kind == ExprKind::kLoad) loads.push_back({node.id, node.args});
    });
  }
  return loads;
}

bool IsBijective(const LoadOf& load, const std::vector<int64_t>& extents,
                 const Workload& workload) {
  return InvertIndices(load.indices, extents, workload.tensors[load.tensor].shape).has_value();
}

bool IsIdentity(const LoadOf& load, const std::vector<int64_t>& extents, const Workload& workload) {
  if (extents != workload.tensors[load.tensor].shape) return false;
  for (size_t k = 0; k < extents.size(); ++k) {
    // An axis of extent 1 may also be written as 0.
    if (extents[k] == 1) continue;
    if (load.indices[k]->kind != ExprKind::kVar || load.indices[k]->id != static_cast<int>(k))
      return false;
  }
  return true;
}

bool MultipliesTwoTensors(const Stage& stage) {
  bool found = false;
  ir::Visit(stage.body[0], [&](const ExprNode& node) {
    if (node.kind != ExprKind::kBinary || node.binary() != BinaryOp::kMul) return;
    const auto loads = [](const Expr& e) {
      bool any = false;
      ir::Visit(e, [&](const ExprNode& inner) { any = any || inner.kind == ExprKind::kLoad; });
      return any;
    };
    found = found || (loads(node.args[0]) && loads(node.args[1]));
  });
  return found;
}

// A load with an index that mixes a spatial and a reduce axis, as windows do.
bool HasWindow(const Stage& stage) {
  const std::vector<int64_t> extents = ExtentsOf(stage);
  for (const LoadOf& load : LoadsOf(stage)) {
    for (const Expr& index : load.indices) {
      bool spatial = false;
      bool reduce = false;
      ir::Visit(index, [&](const ExprNode& node) {
        if (node.kind != ExprKind::kVar || extents[node.id] == 1) return;
        (node.id < stage.num_spatial() ? spatial : reduce) = true;
      });
      if (spatial && reduce) return true;
    }
  }
  return false;
}

/// Reads of one tensor over all Stages, relative to the last Stage's axes.
OperandRead ReadOf(const Workload& workload, int tensor) {
  OperandRead read{.read = false, .bijective = true, .identity = true, .once = true};
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const Stage& stage = workload.stages[s];
    const std::vector<int64_t> extents = ExtentsOf(stage);
    for (const LoadOf& load : LoadsOf(stage)) {
      if (load.tensor != tensor) continue;
      read.read = true;
      read.bijective = read.bijective && IsBijective(load, extents, workload);
      const bool last = s + 1 == workload.stages.size();
      if (last) read.identity = read.identity && IsIdentity(load, extents, workload);
      read.once = read.once && ReadsOnce(load.indices, extents);
    }
  }
  if (!read.read) return {};
  read.identity = read.identity && read.bijective;
  return read;
}

// Row-wise: the reductions read all of one operand, each element once, and the last Stage is a map
// over its elements. Gives that operand's tensor.
std::optional<int> RowWiseOperand(const Workload& workload) {
  const Stage& last = workload.stages.back();
  if (!last.reduce.empty()) return std::nullopt;
  for (const LoadOf& load : LoadsOf(last)) {
    if (workload.tensors[load.tensor].kind == ir::TensorKind::kStage) continue;
    if (!IsBijective(load, last.spatial, workload)) continue;
    bool rows = true;
    for (const Stage& stage : workload.stages) {
      if (stage.reduce.empty()) continue;
      bool reads_it = false;
      for (const LoadOf& other : LoadsOf(stage)) {
        if (other.tensor != load.tensor) continue;
        reads_it = true;
        rows = rows && IsBijective(other, ExtentsOf(stage), workload);
      }
      rows = rows && reads_it;
    }
    if (rows) return load.tensor;
  }
  return std::nullopt;
}

void DescribeRows(const Workload& workload, int operand, NodeProfile& profile) {
  const ir::Tensor& tensor = workload.tensors[operand];
  profile.contiguous_rows = true;
  for (const Stage& stage : workload.stages) {
    if (stage.reduce.empty()) continue;
    profile.row_bytes =
        std::max(profile.row_bytes, Product(stage.reduce) * ir::SizeOf(tensor.dtype));
    for (const LoadOf& load : LoadsOf(stage)) {
      if (load.tensor != operand) continue;
      profile.contiguous_rows = profile.contiguous_rows &&
                                ContiguousOffset(load.indices, ExtentsOf(stage), tensor.shape) == 0;
    }
  }
}

void ClassifyAnchor(const Workload& workload, NodeProfile& profile) {
  for (const Stage& stage : workload.stages) {
    if (stage.scan >= 0) {
      profile.role = NodeRole::kScan;
      return;
    }
  }
  const bool contraction = std::ranges::any_of(workload.stages, [](const Stage& stage) {
    return stage.combiner == ir::Combiner::kSum && MultipliesTwoTensors(stage);
  });
  if (const std::optional<int> operand = RowWiseOperand(workload)) {
    profile.role = NodeRole::kRowWise;
    DescribeRows(workload, *operand, profile);
    return;
  }
  if (std::ranges::any_of(workload.stages, HasWindow) && !contraction) {
    profile.role = NodeRole::kWindow;
    return;
  }
  profile.role = contraction ? NodeRole::kContraction : NodeRole::kReduction;
}

// Tensors of the Workload by input of the node, -1 where the input stands in the text or is absent.
std::vector<int> TensorsOfInputs(const Node& node, const GroupWorkload& group) {
  std::vector<int> tensors;
  const std::vector<int> inputs = group.workload.Inputs();
  const std::vector<int> constants = group.workload.Constants();
  for (ValueId id : node.inputs) {
    int tensor = -1;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (group.inputs[k] == id) tensor = inputs[k];
    }
    for (size_t k = 0; k < constants.size(); ++k) {
      if (group.constants[k] == id) tensor = constants[k];
    }
    tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace

absl::StatusOr<NodeProfile> ProfileNode(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  NodeProfile profile;
  profile.reads.resize(node.inputs.size());
  const OpDefinition* definition = FindOp(node.op);
  if (definition != nullptr && !definition->extern_name.empty()) {
    profile.role = NodeRole::kExtern;
    for (OperandRead& read : profile.reads) read.read = true;
    return profile;
  }
  HONE_ASSIGN_OR_RETURN(GroupWorkload group, BuildNodeWorkload(graph, id));
  Workload& workload = group.workload;
  if (workload.stages.empty())
    return absl::InternalError("node " + node.origin + " (" + node.op + ") has no Stage");
  InlineMaps(workload);

  const bool anchored = std::ranges::any_of(
      workload.stages, [](const Stage& stage) { return !stage.reduce.empty() || stage.scan >= 0; });
  if (anchored) {
    ClassifyAnchor(workload, profile);
  } else {
    CostOfBody cost(profile);
    for (const Stage& stage : workload.stages) {
      cost.Add(stage.body[0]);
      profile.instructions += CostOfBody::InstructionsOf(stage.body[0]);
    }
    profile.role = cost.arithmetic() ? NodeRole::kMap : NodeRole::kMove;
    profile.num_sources = cost.num_sources();
  }
  const std::vector<int> tensors = TensorsOfInputs(node, group);
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k] >= 0) profile.reads[k] = ReadOf(workload, tensors[k]);
  }
  const Stage& only = workload.stages[0];
  if (profile.role == NodeRole::kMove && workload.stages.size() == 1 &&
      only.body[0]->kind == ExprKind::kLoad && !tensors.empty() && only.body[0]->id == tensors[0]) {
    profile.alias_offset =
        ContiguousOffset(only.body[0]->args, only.spatial, workload.tensors[tensors[0]].shape);
  }
  return profile;
}

}  // namespace hone::graph
