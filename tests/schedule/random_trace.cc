#include "tests/schedule/random_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "schedule/nest_builder.h"

namespace hone::schedule {
namespace {

/// Proposes instructions and keeps those that apply.
class Generator {
 public:
  Generator(const ir::Workload& workload, Random& random, TraceUse* use)
      : s_(workload), r_(random), use_(*use) {}

  Trace Run(const std::string& kind) {
    if (kind == "winograd") StartWinograd();
    if (kind == "online_softmax") StartOnlineSoftmax();
    Rewrite(kind == "grid");
    if (kind == "grid") {
      Grid();
    } else {
      std::vector<int> order = LiveStages(s_);
      for (size_t k = order.size(); k-- > 0;) {
        ChoosePlace(order[k]);
        ShapeLoops(order[k]);
      }
      CopyReads();
      for (int id : LiveStages(s_)) Annotate(id);
    }
    use_.stages = static_cast<int>(LiveStages(s_).size());
    CountPlaces(s_, &use_);
    return trace_;
  }

 private:
  bool Try(const std::string& text) {
    const auto parsed = ParseTrace(text);
    if (!parsed.ok() || parsed->instructions.size() != 1) return false;
    Schedule next = s_;
    if (!Apply(next, parsed->instructions[0]).ok()) return false;
    s_ = std::move(next);
    trace_.instructions.push_back(parsed->instructions[0]);
    ++use_.counts[parsed->instructions[0].primitive];
    return true;
  }

  const ir::Stage& stage(int id) const { return s_.workload.stages[static_cast<size_t>(id)]; }
  const StageSchedule& schedule(int id) const { return s_.stages[static_cast<size_t>(id)]; }
  const std::string& Name(int id) const { return stage(id).name; }
  std::string NewName() const { return fmt::format("s{}", s_.next_name); }
  std::vector<std::string> Loops(int id) const {
    std::vector<std::string> names;
    for (int l : schedule(id).order)
      names.push_back(schedule(id).loops[static_cast<size_t>(l)].name);
    return names;
  }
  bool IsOutput(int id) const {
    return std::ranges::any_of(stage(id).results, [&](int t) {
      return s_.workload.tensors[static_cast<size_t>(t)].output;
    });
  }
  std::vector<int> Readers(int id) const {
    std::vector<int> readers;
    for (int other : LiveStages(s_)) {
      if (other != id && hone::schedule::Loads(stage(other), stage(id))) readers.push_back(other);
    }
    return readers;
  }

  void StartWinograd() {
    for (int id : LiveStages(s_)) {
      if (stage(id).num_reduce() == 3 &&
          Try(fmt::format("{} = algorithm({}, winograd, {})", NewName(), Name(id),
                          r_.Chance(0.7) ? 2 : 4)))
        return;
    }
  }

  void StartOnlineSoftmax() {
    for (int id : LiveStages(s_)) {
      if (stage(id).num_reduce() != 1) continue;
      const int64_t keys = stage(id).reduce[0], block = r_.Between(1, keys);
      if (!Try(fmt::format("{} = algorithm({}, online_softmax, {})", NewName(), Name(id), block)))
        continue;
      ++use_.counts["online_softmax"];
      calm_ = true;
      use_.has_tail |= keys % block != 0;
      return;
    }
  }

  /// Primitives that rewrite Stages: before their loops are touched.
  void Rewrite(bool grid) {
    for (int id : LiveStages(s_)) {
      if (stage(id).combiner == ir::Combiner::kNone && !IsOutput(id) && r_.Chance(0.3))
        Try(fmt::format("inline({})", Name(id)));
    }
    for (int id : LiveStages(s_)) {
      if (stage(id).num_reduce() > 0 && r_.Chance(0.3)) {
        const auto axis =
            static_cast<int64_t>(r_.Below(static_cast<uint64_t>(stage(id).num_reduce())));
        Try(fmt::format("{} = rfactor({}, {}.r{}, {}, {})", NewName(), Name(id), Name(id), axis,
                        r_.Between(2, 5), r_.Chance(0.5) ? "inner" : "outer"));
      }
    }
    for (int id : LiveStages(s_)) {
      if (r_.Chance(0.3)) PackOne(id);
      if (r_.Chance(0.2)) FlattenOne(id, grid);
      if (r_.Chance(0.2)) PermuteOne(id);
    }
    for (int id : LiveStages(s_)) {
      const std::vector<int> readers = Readers(id);
      if (stage(id).num_reduce() > 0 && readers.size() == 1 && r_.Chance(0.3))
        Try(fmt::format("epilogue({}, {})", Name(id), Name(readers[0])));
    }
  }

  /// Two neighbours among the axes, a reduce axis rounded up, or on a grid one axis as two.
  void FlattenOne(int id, bool grid) {
    const std::string name = Name(id);
    const int spatial = stage(id).num_spatial(), first = static_cast<int>(r_.Between(0, 3));
    if (r_.Chance(0.5))
      Try(fmt::format("flatten({}, [r0], {})", name, r_.Between(1, 5)));
    else if (first + 1 < spatial)
      Try(fmt::format("flatten({}, [i{},i{}])", name, first, first + 1));
    else if (spatial > 0 && grid)
      Try(fmt::format("unflatten({}, i{}, 2)", name, first % spatial));
  }

  void PermuteOne(int id) {
    std::vector<std::string> axes;
    for (int a = 0; a < stage(id).num_spatial(); ++a) axes.push_back(fmt::format("i{}", a));
    r_.Shuffle(axes);
    Try(fmt::format("permute({}, [{}])", Name(id), fmt::join(axes, ",")));
  }

  void PackOne(int id) {
    const std::vector<int> tensors = TensorsReadBy(stage(id));
    if (tensors.empty()) return;
    const ir::Tensor& t = s_.workload.tensors[static_cast<size_t>(r_.Pick(tensors))];
    if (t.shape.empty() || t.kind == ir::TensorKind::kImmediate) return;
    std::vector<std::string> dims;
    const size_t blocked = r_.Below(t.shape.size());
    const int64_t block = r_.Between(2, 5);
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const std::string dim = fmt::format("i{}", d);
      if (d == blocked) dims.push_back(fmt::format("{}%{}", dim, block));
      dims.push_back(d == blocked ? fmt::format("{}/{}", dim, block) : dim);
    }
    r_.Shuffle(dims);
    Try(fmt::format("{} = pack({}, {}, [{}])", NewName(), Name(id), t.name, fmt::join(dims, ",")));
  }

  /// Where each loop of the Stages around stands: the chain (stage, position) from `id` to its
  /// root.
  std::vector<std::pair<int, int>> Chain(int id) const {
    std::vector<std::pair<int, int>> chain;
    while (schedule(id).place == Place::kAt) {
      const int owner = schedule(id).at_stage;
      chain.emplace_back(owner, s_.PositionOf({owner, schedule(id).at_loop}));
      id = owner;
    }
    return chain;
  }

  void ChoosePlace(int id) {
    const std::vector<int> readers = Readers(id);
    const double root = IsOutput(id) ? 0.6 : 0.2;
    if (readers.empty() || r_.Chance(root)) return;
    // The loops that are around all readers.
    std::vector<std::string> loops;
    auto add = [&](int owner, int last) {
      const std::vector<std::string> names = Loops(owner);
      for (int p = 0; p <= last && p < static_cast<int>(names.size()); ++p)
        loops.push_back(names[static_cast<size_t>(p)]);
    };
    std::map<int, int> around;  // stage → innermost allowed position
    std::map<int, int> times;
    for (int reader : readers) {
      auto chain = Chain(reader);
      chain.insert(chain.begin(), {reader, static_cast<int>(schedule(reader).order.size()) - 1});
      for (const auto& [owner, position] : chain) {
        around[owner] = around.contains(owner) ? std::min(around[owner], position) : position;
        ++times[owner];
      }
    }
    for (const auto& [owner, position] : around) {
      if (times[owner] == static_cast<int>(readers.size())) add(owner, position);
    }
    // A Stage of a scan is computed one iteration at a time, by another one of its scan.
    if (stage(id).scan >= 0 && !r_.Chance(0.03)) {
      std::erase_if(loops, [&](const std::string& loop) {
        const auto ref = s_.Loop(loop);
        const std::vector<int>& order = schedule(ref->stage).order;
        const auto at = std::find(order.begin(), order.end(), ref->loop);
        return stage(ref->stage).scan != stage(id).scan ||
               std::any_of(at + 1, order.end(), [&](int l) { return IsSequential(ref->stage, l); });
      });
    }
    if (loops.empty()) return;
    const bool registers = !IsOutput(id) && r_.Chance(0.4);
    Try(fmt::format("compute_at({}, {}{})", Name(id), r_.Pick(loops),
                    registers        ? ", register"
                    : r_.Chance(0.5) ? ", memory"
                                     : ""));
    if (stage(id).num_spatial() > 0 && r_.Chance(0.2))
      Try(fmt::format("round({}, {}, {})", Name(id), r_.Between(0, stage(id).num_spatial() - 1),
                      r_.Between(2, 8)));
  }

  void ShapeLoops(int id) {
    // One of many Stages of a scan with its sequential axis elsewhere makes all of it illegal.
    const bool calm = calm_ && stage(id).scan >= 0 && r_.Chance(0.9);
    for (const std::string& loop : Loops(id)) {
      if (calm && IsSequential(loop)) continue;
      if (r_.Chance(IsSequential(loop) ? 0.15 : 0.55)) Split(loop);
    }
    for (const std::string& loop : Loops(id)) {
      if (r_.Chance(0.1) && !(calm && IsSequential(loop))) Split(loop);
    }
    if (r_.Chance(0.3)) Fuse(id);
    if (!calm && r_.Chance(0.7)) Reorder(id);
    if (schedule(id).epilogue >= 0) {
      Try(fmt::format("{} = cache_write({}, {}, at={})", NewName(), Name(id),
                      r_.Chance(0.5) ? "register" : "memory", Loops(id)[0]));
    }
    if (stage(id).num_reduce() > 0 && r_.Chance(0.5)) {
      const std::vector<std::string> loops = Loops(id);
      // Tiles have one size: inside the loops over parts of two sizes.
      size_t first = calm ? 1 : 0;
      for (size_t k = 0; k < loops.size(); ++k) {
        const LoopNode& n = s_.node(*s_.Loop(loops[k]));
        if (n.origin == LoopNode::Origin::kOuter && n.tail == Tail::kTwoSizes &&
            !s_.IsReduce(*s_.Loop(loops[k])))
          first = k;
      }
      if (r_.Chance(0.05)) first = 0;
      Try(fmt::format("{} = cache_write({}, {}, at={})", NewName(), Name(id),
                      r_.Chance(0.8) ? "register" : "memory",
                      loops[first + r_.Below(std::max<size_t>(1, loops.size() - 1 - first))]));
    }
    if (r_.Chance(0.25)) {
      const std::vector<std::string> loops = Loops(id);
      if (loops.empty()) return;
      std::vector<std::string> cuts;
      for (int64_t k = r_.Between(1, 2); k > 0; --k)
        cuts.push_back(std::to_string(r_.Chance(0.5) ? r_.Between(1, 3) : -r_.Between(1, 2)));
      const std::string loop = r_.Pick(loops);
      if (!IsSequential(loop) || r_.Chance(0.05))
        Try(fmt::format("partition({}, [{}])", loop, fmt::join(cuts, ",")));
    }
    if (!IsOutput(id) && r_.Chance(0.2) && stage(id).num_spatial() > 0) {
      Try(fmt::format("align({}, {}, {})", Name(id),
                      r_.Below(static_cast<uint64_t>(stage(id).num_spatial())), r_.Between(1, 5)));
    }
  }

  void Split(const std::string& loop) {
    const auto ref = s_.Loop(loop);
    if (!ref.ok()) return;
    const int64_t n = s_.NominalExtent(*ref);
    const uint64_t tail = r_.Below(20);
    std::vector<int64_t> factors;
    std::string text;
    if (tail < 5) {
      std::vector<int64_t> divisors;
      for (int64_t f = 1; f <= n; ++f) {
        if (n % f == 0) divisors.push_back(f);
      }
      factors = {r_.Pick(divisors)};
      if (r_.Chance(0.3)) factors.push_back(1);
    } else if (tail < 12) {
      factors = {r_.Between(2, std::max<int64_t>(2, std::min<int64_t>(n + 1, 8)))};
      if (r_.Chance(0.3)) factors.insert(factors.begin(), 2);
      text = ", mask";
    } else {
      factors = {r_.Between(1, std::max<int64_t>(1, n))};
      text = ", two_sizes";
    }
    if (!Try(fmt::format("split({}, [{}]{})", loop, fmt::join(factors, ","), text))) return;
    ++use_.counts["tail " + (text.empty() ? std::string("exact") : text.substr(2))];
    int64_t part = 1;
    for (int64_t f : factors) part *= f;
    use_.has_tail |= !text.empty() && n % part != 0;
  }

  void Fuse(int id) {
    const std::vector<std::string> loops = Loops(id);
    if (loops.size() < 2) return;
    const size_t k = r_.Below(loops.size() - 1);
    if ((IsSequential(loops[k]) || IsSequential(loops[k + 1])) && !r_.Chance(0.05)) return;
    const std::string name = fmt::format("{}.f{}", Name(id), fused_++);
    if (!Try(fmt::format("{} = fuse({}, {})", name, loops[k], loops[k + 1]))) return;
    if (r_.Chance(0.6)) Split(name);
  }

  void Reorder(int id) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      std::vector<std::string> loops = Loops(id);
      if (loops.size() < 2) return;
      r_.Shuffle(loops);
      if (r_.Chance(0.3)) loops.resize(2);
      if (Try(fmt::format("reorder({})", fmt::join(loops, ", ")))) return;
    }
  }

  void CopyReads() {
    for (int id : LiveStages(s_)) {
      if (!r_.Chance(0.2)) continue;
      const std::vector<int> tensors = TensorsReadBy(stage(id));
      if (tensors.empty()) continue;
      const int read = r_.Pick(tensors);
      const std::string tensor = s_.workload.tensors[static_cast<size_t>(read)].name;
      const std::vector<std::string> loops = Loops(id);
      // A copy further out than its source would read what is not computed yet.
      const int producer = s_.workload.Producer(read);
      if (producer >= 0 && schedule(producer).place == Place::kAt && r_.Chance(0.9)) continue;
      const std::string name = NewName();
      std::string at;
      if (!loops.empty() && r_.Chance(0.8))
        at = fmt::format(", at={}{}", r_.Pick(loops), r_.Chance(0.3) ? ", storage=register" : "");
      if (!Try(fmt::format("{} = cache_read({}, {}{})", name, Name(id), tensor, at))) continue;
      const auto copy = s_.Stage(name);
      if (copy.ok() && r_.Chance(0.5)) ShapeLoops(*copy);
    }
  }

  /// A Stage or a tile stands at this loop or further inside.
  bool SomethingInside(int id, int loop) const {
    const int position = s_.PositionOf({id, loop});
    const auto& tile = schedule(id).cache_write;
    if (tile && s_.PositionOf({id, tile->loop}) >= position) return true;
    return std::ranges::any_of(s_.stages, [&](const StageSchedule& s) {
      return s.place == Place::kAt && s.at_stage == id &&
             s_.PositionOf({id, s.at_loop}) >= position;
    });
  }
  /// The t of a scan or a part of it.
  bool IsSequential(int id, int loop) const {
    if (stage(id).scan < 0) return false;
    const auto& loops = schedule(id).loops;
    while (loops[static_cast<size_t>(loop)].parent >= 0)
      loop = loops[static_cast<size_t>(loop)].parent;
    return loop == 0;
  }
  bool IsSequential(const std::string& name) const {
    const auto ref = s_.Loop(name);
    return ref.ok() && IsSequential(ref->stage, ref->loop);
  }

  void Annotate(int id) {
    const std::vector<int> order = schedule(id).order;
    if (order.empty()) return;
    // A vector needs the loops around it, and nothing may stand in it: mostly the innermost loop.
    if (r_.Chance(0.55)) {
      const int loop = r_.Chance(0.8) ? order.back() : r_.Pick(order);
      if ((!SomethingInside(id, loop) && !IsSequential(id, loop)) || r_.Chance(0.03))
        Try(fmt::format("vectorize({})", LoopName(id, loop)));
    }
    if (schedule(id).place == Place::kRoot && r_.Chance(0.4)) {
      size_t outermost = 0;
      while (outermost + 1 < order.size() && IsSequential(id, order[outermost])) ++outermost;
      if (r_.Chance(0.03)) outermost = r_.Below(order.size());
      Try(fmt::format("parallel({}, {})", LoopName(id, order[outermost]), r_.Between(1, 3)));
    }
    for (int loop : order) {
      if (r_.Chance(0.35) && s_.NominalExtent({id, loop}) <= 16)
        Try(fmt::format("unroll({})", LoopName(id, loop)));
    }
    if (r_.Chance(0.12)) Prefetch(id);
  }

  void Prefetch(int id) {
    const std::vector<int> tensors = TensorsReadBy(stage(id));
    if (tensors.empty()) return;
    const int tensor = r_.Pick(tensors);
    const int producer = s_.workload.Producer(tensor);
    const bool in_registers = producer >= 0 && schedule(producer).place == Place::kAt &&
                              schedule(producer).storage == Storage::kRegister;
    const int loop = r_.Pick(schedule(id).order);
    const LoopNode& node = schedule(id).loops[static_cast<size_t>(loop)];
    if ((in_registers || node.kind == ir::LoopKind::kVector) && !r_.Chance(0.05)) return;
    const auto& name = s_.workload.tensors[static_cast<size_t>(tensor)].name;
    const char* shared = r_.Chance(0.3) ? ", shared" : "";
    Try(fmt::format("prefetch({}, {}, {}{})", node.name, name, r_.Between(1, 4), shared));
  }

  const std::string& LoopName(int id, int loop) const {
    return schedule(id).loops[static_cast<size_t>(loop)].name;
  }

  /// The last Stage on a grid; what it reads in shared memory or at root.
  void Grid() {
    const std::vector<int> live = LiveStages(s_);
    const int owner = live.back();
    for (size_t k = live.size() - 1; k-- > 0;) {
      if (!IsOutput(live[k]) && r_.Chance(0.5)) ShapeLoops(live[k]);
    }
    if (stage(owner).num_reduce() > 0 && r_.Chance(0.3) && ShareAmongLanes(owner)) return;
    if (stage(owner).num_spatial() < 2) return;
    const std::string name = Name(owner);
    const int64_t ty = r_.Between(1, 3), tx = r_.Between(2, 4);
    const std::string first = fmt::format("{}.i0", name), second = fmt::format("{}.i1", name);
    if (!Try(fmt::format("split({}, {}, mask)", first, ty)) ||
        !Try(fmt::format("split({}, [{},{}], mask)", second, tx, r_.Between(1, 2))))
      return;
    ++use_.counts["tail mask"], ++use_.counts["tail mask"];
    use_.has_tail = true;
    std::string reduce;
    if (stage(owner).num_reduce() > 0) {
      reduce = fmt::format("{}.r0", name);
      const int64_t n = stage(owner).reduce[0];
      if (r_.Chance(0.8) && Try(fmt::format("split({}, {}, {})", reduce, r_.Between(1, n),
                                            r_.Chance(0.5) ? "mask" : "two_sizes")))
        reduce += ".0";
    }
    std::vector<std::string> order = {first + ".0", second + ".0", first + ".1", second + ".1"};
    for (const std::string& loop : Loops(owner)) {
      if (std::ranges::find(order, loop) == order.end() && loop != second + ".2")
        order.push_back(loop);
    }
    order.push_back(second + ".2");
    Try(fmt::format("reorder({})", fmt::join(order, ", ")));
    Try(fmt::format("bind({}, block.{})", order[0], (ty + tx) % 2 == 0 ? "z" : "y"));
    Try(fmt::format("bind({}, block.x)", order[1]));
    Try(fmt::format("bind({}, thread.y)", order[2]));
    Try(fmt::format("bind({}, thread.x)", order[3]));
    if (!reduce.empty() && r_.Chance(0.8))
      Try(fmt::format("{} = cache_write({}, register, at={})", NewName(), name, order[3]));
    const std::string at = reduce.empty() || r_.Chance(0.2) ? order[3] : reduce;
    for (int tensor : TensorsReadBy(stage(owner))) {
      const ir::Tensor t = s_.workload.tensors[static_cast<size_t>(tensor)];
      if (t.shape.empty() || r_.Chance(0.2)) continue;
      const std::string copy = NewName();
      if (!Try(fmt::format("{} = cache_read({}, {}, at={}, storage=shared)", copy, name, t.name,
                           at)))
        continue;
      ShareAmongThreads(copy, static_cast<int>(t.shape.size()), ty, tx);
    }
  }

  /// Lanes reduce their parts of the first reduce axis; a result each in a register.
  bool ShareAmongLanes(int owner) {
    const int spatial = stage(owner).num_spatial();
    if (spatial < 1 || spatial > 2) return false;
    const std::string name = Name(owner), first = name + ".i0", terms = name + ".r0",
                      lane = terms + ".1";
    if (!Try(fmt::format("split({}, {}, mask)", first, r_.Between(1, 5))) ||
        !Try(fmt::format("split({}, {}, mask)", terms, int64_t{2} << r_.Below(5))))
      return false;
    std::vector<std::string> order = {first + ".0", first + ".1", lane};
    if (spatial == 2) order.insert(order.begin(), name + ".i1");
    for (const std::string& loop : Loops(owner)) {
      if (std::ranges::find(order, loop) == order.end()) order.push_back(loop);
    }
    Try(fmt::format("reorder({})", fmt::join(order, ", ")));
    if (spatial == 2) Try(fmt::format("bind({}.i1, block.y)", name));
    Try(fmt::format("bind({}.0, block.x)", first));
    Try(fmt::format("bind({}.1, thread.y)", first));
    Try(fmt::format("{} = cache_write({}, register, at={})", NewName(), name, lane));
    if (Try(fmt::format("bind({}, thread.x)", lane))) ++use_.counts["lanes"];
    return true;
  }

  void ShareAmongThreads(const std::string& copy, int rank, int64_t ty, int64_t tx) {
    const std::string last = fmt::format("{}.i{}", copy, rank - 1);
    if (rank == 1) {
      Try(fmt::format("split({}, [{},{}], mask)", last, ty, tx));
      Try(fmt::format("bind({}.1, thread.y)", last));
      Try(fmt::format("bind({}.2, thread.x)", last));
      return;
    }
    const std::string before = fmt::format("{}.i{}", copy, rank - 2);
    Try(fmt::format("split({}, {}, mask)", before, ty));
    Try(fmt::format("split({}, {}, mask)", last, tx));
    Try(fmt::format("bind({}.1, thread.y)", before));
    Try(fmt::format("bind({}.1, thread.x)", last));
  }

  Schedule s_;
  Random& r_;
  TraceUse& use_;
  Trace trace_;
  int fused_ = 0;
  bool calm_ = false;  ///< mostly leave the loops of scans in order
};

}  // namespace

Trace MakeTrace(const ir::Workload& workload, Random& random, const std::string& kind,
                TraceUse* use) {
  return Generator(workload, random, use).Run(kind);
}

}  // namespace hone::schedule
