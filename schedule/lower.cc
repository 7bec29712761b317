#include "schedule/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "base/versions.h"
#include "ir/phase_access.h"
#include "ir/workload_builder.h"
#include "schedule/nest_builder.h"
#include "schedule/scan_block.h"
#include "schedule/scan_rules.h"
#include "schedule/schedule.h"
#include "schedule/tiny_exponentials.h"

namespace hone::schedule {

namespace {

/// Live root Stages that depend on constants and immediates only (and no Stage that is not such):
/// made once.
std::vector<bool> PrologueStages(const Schedule& s, const std::vector<int>& order) {
  std::vector<bool> prologue(s.workload.stages.size(), false);
  for (int id : order) {
    bool constant = s.workload.stages[id].scan < 0 && s.stages[id].place == Place::kRoot &&
                    s.stages[id].epilogue < 0,
         reads = false;
    for (int r : s.workload.stages[id].results) constant &= !s.workload.tensors[r].output;
    for (const auto& body : s.workload.stages[id].body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ir::ExprKind::kLoad) return;
        reads = true;
        const ir::TensorKind kind = s.workload.tensors[e.id].kind;
        int producer = s.workload.Producer(e.id);
        constant &= kind == ir::TensorKind::kConstant || kind == ir::TensorKind::kImmediate ||
                    (producer >= 0 && prologue[producer]);
      });
    }
    prologue[id] = constant && reads;
  }
  return prologue;
}

bool StageReads(const ir::Stage& stage, int tensor) {
  bool reads = false;
  for (const auto& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      reads |= e.kind == ir::ExprKind::kLoad && e.id == tensor;
    });
  }
  return reads;
}

/// Everything about the kernel's interface, found before any loop is made.
struct Interface {
  std::vector<int> order;      ///< live Stages, topological
  std::vector<bool> prologue;  ///< by Stage
  std::vector<int> inputs, constants, prologue_results, outputs, workspace;  ///< tensors
};

Interface FindInterface(const Schedule& s) {
  Interface f;
  f.order = LiveStages(s);
  f.prologue = PrologueStages(s, f.order);
  f.inputs = s.workload.Inputs();
  f.constants = s.workload.Constants();
  f.outputs = s.workload.Outputs();
  for (int id : f.order) {
    for (int r : s.workload.stages[id].results) {
      if (s.workload.tensors[r].output) continue;
      if (f.prologue[id]) {
        bool needed = false;
        for (int reader : f.order)
          needed |= !f.prologue[reader] && StageReads(s.workload.stages[reader], r);
        if (needed) f.prologue_results.push_back(r);
      } else if (NestBuilder::NeedsWholeBuffer(s, r)) {
        f.workspace.push_back(r);
      }
    }
  }
  return f;
}

ir::ArtifactBuffer Describe(const Schedule& s, int tensor, int64_t elements) {
  const ir::Tensor& t = s.workload.tensors[tensor];
  ir::ArtifactBuffer buffer{t.dtype, t.shape, elements * ir::SizeOf(t.dtype)};
  if (MayOverwrite(s, tensor)) buffer.shape[0] = 1;
  return buffer;
}

/// The prologue as a canonical Workload of its own; fills the artifact's map of its inputs and
/// outputs.
ir::Workload PrologueWorkload(const Schedule& s, const Interface& f, ir::Artifact* artifact) {
  ir::Workload w;
  if (f.prologue_results.empty()) return w;
  w.tensors = s.workload.tensors;
  for (auto& t : w.tensors) t.output = false;
  for (int c : f.constants) w.tensors[c].kind = ir::TensorKind::kInput;
  for (int r : f.prologue_results) w.tensors[r].output = true;
  for (int id : f.order) {
    if (f.prologue[id]) w.stages.push_back(s.workload.stages[id]);
  }
  ir::WorkloadBuilder::Result canonical = ir::Canonicalise(w);
  auto index_of = [&](const std::vector<int>& list, int tensor) {
    return static_cast<int32_t>(std::find(list.begin(), list.end(), canonical.canonical[tensor]) -
                                list.begin());
  };
  const std::vector<int> inputs = canonical.workload.Inputs(),
                         outputs = canonical.workload.Outputs();
  artifact->prologue_inputs.resize(inputs.size());
  for (size_t c = 0; c < f.constants.size(); ++c) {
    if (canonical.canonical[f.constants[c]] < 0) continue;
    artifact->prologue_inputs[index_of(inputs, f.constants[c])] = static_cast<int32_t>(c);
  }
  for (int r : f.prologue_results) artifact->prologue_outputs.push_back(index_of(outputs, r));
  return canonical.workload;
}

/// A Stage that is computed at a loop is never computed when that loop's Stage is not.
absl::Status CheckPlaces(const Schedule& s, const Interface& f) {
  for (int id : f.order) {
    if (s.stages[id].place != Place::kAt) continue;
    const int owner = s.stages[id].at_stage;
    if (std::find(f.order.begin(), f.order.end(), owner) != f.order.end() && !f.prologue[owner])
      continue;
    return absl::InvalidArgumentError(
        fmt::format("{} is computed at a loop of {}, which nothing reads",
                    s.workload.stages[id].name, s.workload.stages[owner].name));
  }
  return absl::OkStatus();
}

/// The prologue is a Workload without a schedule: dense, in any order.
absl::Status CheckPrologue(const Schedule& s, const Interface& f) {
  for (int id : f.order) {
    const auto& align = s.stages[id].align;
    if (!f.prologue[id] ||
        std::all_of(align.begin(), align.end(), [](int64_t n) { return n == 0; }))
      continue;
    return absl::InvalidArgumentError(
        fmt::format("align({}): it depends on constants only, so it is made when packaging, dense",
                    s.workload.stages[id].name));
  }
  return absl::OkStatus();
}

/// The phases of a kernel in the order in which they run. Those of a scan are repeated together;
/// where threads run them, they are one phase.
class PhaseList {
 public:
  PhaseList(NestBuilder* builder, std::string prefix)
      : nest_(builder->nest()), prefix_(std::move(prefix)) {}

  void Add(ir::Phase phase) {
    Push(std::move(phase));
    nest_.steps.push_back({static_cast<int>(nest_.phases.size()) - 1, 1, 1});
  }
  void AddToScan(int scan, int64_t repeats, ir::Phase phase) {
    scan_ = scan;
    repeats_ = repeats;
    open_.push_back(std::move(phase));
  }
  int open_scan() const { return scan_; }
  absl::Status CloseScan() {
    scan_ = -1;
    const std::vector<ir::Phase> phases = std::exchange(open_, {});
    if (phases.empty()) return absl::OkStatus();
    if (std::ranges::any_of(phases, HasThreads)) {
      HONE_ASSIGN_OR_RETURN(ir::Phase all, ScanInOneBlock(phases, repeats_, nest_.buffers));
      Add(std::move(all));
      return absl::OkStatus();
    }
    const int first = static_cast<int>(nest_.phases.size());
    for (const ir::Phase& phase : phases) Push(phase);
    nest_.steps.push_back({first, static_cast<int>(phases.size()), repeats_});
    return absl::OkStatus();
  }

 private:
  void Push(ir::Phase phase) {
    phase.symbol = fmt::format("{}_p{}", prefix_, nest_.phases.size());
    nest_.phases.push_back(std::move(phase));
  }

  ir::LoopNest& nest_;
  const std::string prefix_;
  std::vector<ir::Phase> open_;  ///< of the scan that is not closed
  int scan_ = -1;
  int64_t repeats_ = 1;
};

absl::Status BuildPhases(const Schedule& s, const Interface& f, const std::string& prefix,
                         NestBuilder* builder) {
  PhaseList list(builder, prefix);
  for (int id : f.order) {
    // A Stage with an epilogue runs when all that the epilogue reads is there.
    const bool ends = s.stages[id].place == Place::kEpilogue;
    if (f.prologue[id] || s.stages[id].epilogue >= 0) continue;
    if (s.stages[id].place != Place::kRoot && !ends) continue;
    auto phase = builder->BuildPhase(ends ? s.stages[id].at_stage : id);
    if (!phase.ok()) return phase.status();
    const ir::Stage& stage = s.workload.stages[id];
    const bool step =
        stage.scan >= 0 && s.stages[id].order[0] == 0;  // the sequential axis, whole and outermost
    if (!step || stage.scan != list.open_scan()) HONE_RETURN_IF_ERROR(list.CloseScan());
    if (step)
      list.AddToScan(stage.scan, stage.spatial[0], *std::move(phase));
    else
      list.Add(*std::move(phase));
  }
  return list.CloseScan();
}

}  // namespace

absl::StatusOr<Lowered> LowerTrace(const ir::Workload& workload, const Trace& trace,
                                   const ir::Target& target, const Binding& binding,
                                   const std::string& prefix) {
  HONE_ASSIGN_OR_RETURN(Schedule s, Replay(workload, trace));
  const Interface f = FindInterface(s);
  HONE_RETURN_IF_ERROR(CheckScans(s, f.order));
  HONE_RETURN_IF_ERROR(CheckPlaces(s, f));
  HONE_RETURN_IF_ERROR(CheckPrologue(s, f));
  ZeroTinyExponentials(s.workload);
  NestBuilder builder(s, f.order);
  Lowered out;
  size_t bound = 0;
  enum class Role : uint8_t { kGiven, kMade };
  auto add = [&](const std::vector<int>& tensors, std::vector<ir::ArtifactBuffer>* list, Role role,
                 bool takes_binding) {
    for (int t : tensors) {
      BufferBinding b;
      if (takes_binding && bound < binding.buffers.size()) b = binding.buffers[bound++];
      builder.AddArgument(t, b, role == Role::kGiven);
      list->push_back(Describe(s, t, builder.nest().buffers.back().elements));
    }
  };
  add(f.inputs, &out.artifact.inputs, Role::kGiven, true);
  add(f.constants, &out.artifact.constants, Role::kGiven, true);
  add(f.prologue_results, &out.artifact.prologue, Role::kGiven, false);
  add(f.outputs, &out.artifact.outputs, Role::kMade, true);
  add(f.workspace, &out.artifact.workspace, Role::kMade, false);
  HONE_RETURN_IF_ERROR(builder.CheckTuples());
  // A constant that only the prologue reads takes no memory at run time.
  std::set<int> unread;
  for (size_t c = 0; c < f.constants.size(); ++c) {
    bool read = false;
    for (int id : f.order)
      read |= !f.prologue[id] && StageReads(s.workload.stages[id], f.constants[c]);
    if (read) continue;
    out.artifact.constants[c].bytes = 0;
    unread.insert(f.constants[c]);
  }
  for (int id : f.order) {
    if (f.prologue[id]) continue;
    for (size_t t = 0; t < s.workload.tensors.size(); ++t) {
      bool immediate = s.workload.tensors[t].kind == ir::TensorKind::kImmediate;
      if (immediate && StageReads(s.workload.stages[id], static_cast<int>(t)))
        builder.AddTable(static_cast<int>(t));
    }
  }
  HONE_ASSIGN_OR_RETURN(std::optional<ir::Phase> checks,
                        builder.BuildIndexChecks(workload, unread, target));
  if (checks) {
    checks->symbol = fmt::format("{}_p0", prefix);
    builder.nest().phases.push_back(*std::move(checks));
    builder.nest().steps.push_back({0, 1, 1});
  }
  HONE_RETURN_IF_ERROR(BuildPhases(s, f, prefix, &builder));
  out.nest = std::move(builder.nest());
  out.prologue = PrologueWorkload(s, f, &out.artifact);
  out.artifact.target = target.text;
  out.artifact.builder = kBuilderVersion;
  for (const auto& p : out.nest.phases) {
    out.artifact.phases.push_back({p.symbol,
                                   p.parallel_extent,
                                   p.scratch_bytes,
                                   std::min(p.threads, target.threads),
                                   {},
                                   ir::AccessesOf(out.nest, p)});
  }
  for (const auto& k : out.nest.steps) out.artifact.steps.push_back({k.first, k.count, k.repeats});
  return out;
}

}  // namespace hone::schedule
