#include "schedule/primitives/primitive.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/status.h"

namespace hone::schedule {

absl::Status Illegal(std::string reason) { return absl::InvalidArgumentError(std::move(reason)); }

absl::Status Arguments::Expect(int low, int high,
                               std::initializer_list<std::string_view> named) const {
  if (count() < low || count() > high) {
    return Illegal(low == high
                       ? fmt::format("takes {} arguments, not {}", low, count())
                       : fmt::format("takes {} to {} arguments, not {}", low, high, count()));
  }
  for (const auto& [key, value] : instruction_.named) {
    if (std::find(named.begin(), named.end(), key) == named.end()) {
      return Illegal(fmt::format("has no argument called {}", key));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Arguments::Tensor(int i) const {
  int id = schedule_.workload.FindTensor(Text(i));
  if (id < 0) return Illegal(fmt::format("no tensor {} here", Text(i)));
  return id;
}

absl::StatusOr<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Illegal(fmt::format("{} is not an integer", text));
  }
  return value;
}

absl::StatusOr<int64_t> Arguments::Integer(int i) const { return ParseInteger(Text(i)); }

absl::StatusOr<std::vector<std::string>> ListItems(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return Illegal(fmt::format("{} is not a list", text));
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> out;
  while (!text.empty()) {
    size_t comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return out;
}

absl::StatusOr<std::vector<int64_t>> Arguments::Integers(int i) const {
  std::vector<int64_t> out;
  if (Text(i).front() != '[') {
    HONE_ASSIGN_OR_RETURN(int64_t value, Integer(i));
    out.push_back(value);
    return out;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> items, ListItems(Text(i)));
  for (const auto& item : items) {
    HONE_ASSIGN_OR_RETURN(int64_t value, ParseInteger(item));
    out.push_back(value);
  }
  return out;
}

std::optional<std::string> Arguments::Named(std::string_view key) const {
  for (const auto& [k, v] : instruction_.named) {
    if (k == key) return v;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> TakeStageName(Schedule& schedule, const Instruction& instruction) {
  const std::string& name = instruction.result;
  if (name.size() < 2 || name[0] != 's') return Illegal("needs a result: sN = …");
  HONE_ASSIGN_OR_RETURN(int64_t number, ParseInteger(std::string_view(name).substr(1)));
  if (number < schedule.next_name || number > 1'000'000 || fmt::format("s{}", number) != name) {
    return Illegal(
        fmt::format("the result {} is taken or not a stage name; the next free one is s{}", name,
                    schedule.next_name));
  }
  schedule.next_name = static_cast<int>(number) + 1;
  return name;
}

int AppendStage(Schedule& schedule, ir::Stage stage, std::string name, ir::DType dtype,
                std::vector<int64_t> shape) {
  ir::Tensor t;
  t.name = name;
  t.kind = ir::TensorKind::kStage;
  t.dtype = dtype;
  t.shape = std::move(shape);
  int id = static_cast<int>(schedule.workload.tensors.size());
  schedule.workload.tensors.push_back(std::move(t));
  stage.name = std::move(name);
  stage.results = {id};
  schedule.workload.stages.push_back(std::move(stage));
  schedule.AddStageSchedule();
  return id;
}

void ResetLoops(Schedule& schedule, int stage) {
  StageSchedule fresh = Schedule::LoopsOf(schedule.workload.stages[stage]);
  schedule.stages[stage].loops = std::move(fresh.loops);
  schedule.stages[stage].order = std::move(fresh.order);
}

void ReplaceLoads(ir::Stage& stage, int from,
                  const std::function<ir::Expr(const std::vector<ir::Expr>&)>& replace) {
  for (auto& body : stage.body) {
    body = ir::Rewrite(body, [&](const ir::Expr& e) -> ir::Expr {
      if (e->kind != ir::ExprKind::kLoad || e->id != from) return nullptr;
      return replace(e->args);
    });
  }
}

absl::Status RequireUnscheduled(const Schedule& schedule, int stage) {
  const StageSchedule& s = schedule.stages[stage];
  bool touched = s.cache_write.has_value() || s.epilogue >= 0;
  for (size_t l = 0; l < s.loops.size(); ++l) {
    const LoopNode& n = s.loops[l];
    touched |= !n.is_leaf() || n.kind != ir::LoopKind::kSerial || !n.cuts.empty() ||
               !n.prefetches.empty() || s.order[l] != static_cast<int>(l);
    if (touched) break;
  }
  for (const auto& other : schedule.stages)
    touched |= other.place == Place::kAt && other.at_stage == stage;
  if (!touched) return absl::OkStatus();
  return Illegal(fmt::format(
      "must come before the loops of {} are split, fused, reordered, annotated or computed at",
      schedule.workload.stages[stage].name));
}

absl::Status RequireFree(const Schedule& schedule, Schedule::LoopRef ref) {
  const std::string& name = schedule.node(ref).name;
  const auto& tile = schedule.stages[ref.stage].cache_write;
  if (tile && tile->loop == ref.loop)
    return Illegal(fmt::format("the tile {} stands at {}", tile->name, name));
  if (!schedule.node(ref).prefetches.empty())
    return Illegal(fmt::format("something is prefetched at {}", name));
  for (size_t id = 0; id < schedule.stages.size(); ++id) {
    const StageSchedule& s = schedule.stages[id];
    if (s.place != Place::kAt || s.at_stage != ref.stage || s.at_loop != ref.loop) continue;
    return Illegal(fmt::format("{} is computed at {}", schedule.workload.stages[id].name, name));
  }
  return absl::OkStatus();
}

absl::Status RequireOutsideScan(const Schedule& schedule, int stage, int tensor) {
  const int producer = schedule.workload.Producer(tensor);
  const int scan = schedule.workload.stages[stage].scan;
  if (scan < 0 || producer < 0 || schedule.workload.stages[producer].scan != scan)
    return absl::OkStatus();
  return Illegal(fmt::format("{} is made in the scan that {} belongs to",
                             schedule.workload.tensors[tensor].name,
                             schedule.workload.stages[stage].name));
}

absl::Status RequireSerial(const Schedule& schedule, Schedule::LoopRef ref) {
  const LoopNode& n = schedule.node(ref);
  if (n.kind != ir::LoopKind::kSerial)
    return Illegal(fmt::format("{} is {} already", n.name, ir::ToString(n.kind)));
  return absl::OkStatus();
}

namespace {
struct Entry {
  std::string_view name;
  Primitive apply;
};
constexpr Entry kPrimitives[] = {
    {"algorithm", ApplyAlgorithm}, {"inline", ApplyInline},        {"compute_at", ApplyComputeAt},
    {"split", ApplySplit},         {"partition", ApplyPartition},  {"reorder", ApplyReorder},
    {"fuse", ApplyFuse},           {"cache_read", ApplyCacheRead}, {"cache_write", ApplyCacheWrite},
    {"pack", ApplyPack},           {"rfactor", ApplyRfactor},      {"vectorize", ApplyAnnotate},
    {"unroll", ApplyAnnotate},     {"parallel", ApplyAnnotate},    {"align", ApplyAlign},
    {"bind", ApplyAnnotate},       {"prefetch", ApplyPrefetch},    {"tensorize", ApplyTensorize},
    {"flatten", ApplyFlatten},     {"unflatten", ApplyUnflatten},  {"im2col", ApplyIm2col},
    {"epilogue", ApplyEpilogue},   {"pipeline", ApplyPipeline},    {"permute", ApplyPermute},
    {"round", ApplyRound},         {"swizzle", ApplySwizzle},
};
}  // namespace

absl::Status Apply(Schedule& schedule, const Instruction& instruction) {
  for (const Entry& e : kPrimitives) {
    if (e.name == instruction.primitive) return e.apply(schedule, instruction);
  }
  std::string known;
  for (const Entry& e : kPrimitives) known += " " + std::string(e.name);
  return Illegal(fmt::format("no primitive {}; there are:{}", instruction.primitive, known));
}

}  // namespace hone::schedule
