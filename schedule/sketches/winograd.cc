#include "schedule/sketches/winograd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {

/// Floats between the slabs of the transformed tensors, so that their strides are no multiple of 4
/// KiB.
constexpr int kSlabPad = 16;

struct Names {
  std::string conv, owner, rows, v, u, product, y_rows, packed;
  int64_t images = 1;
};

/// The loop that images and `rows` are together: with several images the parallel loop runs over
/// both, so that it is the outermost and every thread has a share. `images` stands just outside of
/// `rows`.
std::string WithImages(TraceWriter& w, const Names& n, const std::string& stage,
                       const std::string& images, const std::string& rows) {
  if (n.images == 1) return rows;
  const std::string fused = stage + ".f0";
  w.Emit(fmt::format("{} = fuse({}, {})", fused, images, rows));
  return fused;
}

void TransformLoops(TraceWriter& w, const std::string& stage, const char* a, const char* b,
                    const char* vector) {
  w.Emit(fmt::format("reorder({0}.{1}, {0}.{2}, {0}.r0, {0}.{3})", stage, a, b, vector));
  w.Emit(fmt::format("unroll({0}.{1}); unroll({0}.{2}); unroll({0}.r0); vectorize({0}.{3})", stage,
                     a, b, vector));
}

/// V: rows attached inside its channel loop, everything of one tile unrolled.
void InputTransform(TraceWriter& w, const Names& n, const PlanChoice& choice, int lanes,
                    const ir::Target& target) {
  w.Emit(fmt::format("align({}, 1, {})", n.v, kSlabPad));
  w.Emit(fmt::format("split({}.i5, {}, mask)", n.v, lanes));
  w.Emit(fmt::format("reorder({0}.i2, {0}.i3, {0}.i4, {0}.i5.0, {0}.i0, {0}.i1, {0}.r0, {0}.i5.1)",
                     n.v));
  w.Emit(fmt::format("unroll({0}.i0); unroll({0}.i1); unroll({0}.r0); vectorize({0}.i5.1)", n.v));
  if (!choice.one_phase) {
    const std::string rows = WithImages(w, n, n.v, n.v + ".i2", n.v + ".i3");
    w.Emit(fmt::format("parallel({}, {})", rows, target.threads));
  }
  w.Emit(fmt::format("compute_at({}, {}.i5.0, register)", n.rows, n.v));
  TransformLoops(w, n.rows, "i3", "i4", "i5");
}

void Product(TraceWriter& w, const Names& n, const PlanChoice& choice, int lanes,
             const ir::Target& target) {
  const std::string& p = n.product;
  w.Emit(fmt::format("align({}, 1, {})", p, kSlabPad));
  // The tiles of all images are rows of one product; in one phase there are those of one image.
  const std::string rows = choice.one_phase ? p + ".i3" : WithImages(w, n, p, p + ".i2", p + ".i3");
  const int fused = rows == p + ".i3" ? 0 : 1;
  const std::string t = fmt::format("{}.f{}", p, fused);
  w.Emit(fmt::format("{} = fuse({}, {}.i4)", t, rows, p));
  w.Emit(fmt::format("split({}, {}, two_sizes)", t, choice.tile.rows));
  if (choice.one_phase) {
    w.Emit(fmt::format("split({}.i5, {})", p, lanes));
    w.Emit(fmt::format("reorder({0}.i0, {0}.i1, {1}.0, {0}.r0, {1}.1, {0}.i5.0, {0}.i5.1)", p, t));
    w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), p, t));
    w.Emit(fmt::format("unroll({1}.1); unroll({0}.i5.0); vectorize({0}.i5.1)", p, t));
    return;
  }
  w.Emit(fmt::format("split({}.i5, [{}, {}], mask)", p, choice.tile.vectors, lanes));
  w.Emit(fmt::format("reorder({0}.i0, {0}.i1, {0}.i5.0, {1}.0, {0}.r0, {1}.1, {0}.i5.1, {0}.i5.2)",
                     p, t));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), p, t));
  w.Emit(fmt::format("unroll({1}.1); unroll({0}.i5.1); vectorize({0}.i5.2)", p, t));
  w.Emit(fmt::format("{0}.f{1} = fuse({0}.i0, {0}.i1)", p, fused + 1));
  w.Emit(fmt::format("parallel({}.f{}, {})", p, fused + 1, target.threads));
}

/// The owner's tile of m × m pixels, with both output transforms computed inside.
void Output(TraceWriter& w, const Names& n, const PlanChoice& choice, int lanes,
            const ir::Target& target) {
  const int m = choice.winograd;
  const std::string& o = n.owner;
  const bool own = n.conv == n.owner;
  const std::string reduce = own ? o + ".r0, " : "";
  std::string channel = o + ".i3.0";
  if (choice.one_phase) {
    w.Emit(fmt::format("split({}.i1, {}, mask)", o, m * choice.tile_rows));
    w.Emit(fmt::format("split({}.i1.1, {}, mask)", o, m));
    w.Emit(fmt::format("split({}.i2, {}, mask)", o, m));
    w.Emit(fmt::format("split({}.i3, [{}, {}], mask)", o, choice.tile.vectors, lanes));
    w.Emit(
        fmt::format("reorder({0}.i1.0, {0}.i3.0, {0}.i1.1.0, {0}.i2.0, {0}.i3.1, {0}.i1.1.1, "
                    "{0}.i2.1, {1}{0}.i3.2)",
                    o, reduce));
    w.Emit(fmt::format("unroll({0}.i1.1.1); unroll({0}.i2.1); vectorize({0}.i3.2)", o));
    channel = o + ".i3.1";
  } else {
    w.Emit(fmt::format("split({}.i1, {}, mask)", o, m));
    w.Emit(fmt::format("split({}.i2, {}, mask)", o, m));
    w.Emit(fmt::format("split({}.i3, {}, mask)", o, lanes));
    w.Emit(fmt::format("reorder({0}.i1.0, {0}.i2.0, {0}.i3.0, {0}.i1.1, {0}.i2.1, {1}{0}.i3.1)", o,
                       reduce));
    w.Emit(fmt::format("unroll({0}.i1.1); unroll({0}.i2.1); vectorize({0}.i3.1)", o));
  }
  const std::string blocks = WithImages(w, n, o, o + ".i0", o + ".i1.0");
  w.Emit(fmt::format("parallel({}, {})", blocks, target.threads));
  if (own) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), o, channel));
    w.Emit(fmt::format("unroll({}.r0)", o));
  }
  if (choice.one_phase) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", n.v, blocks));
    w.Emit(fmt::format("compute_at({}, {}.i3.0, memory)", n.product, o));
  }
  w.Emit(fmt::format("compute_at({}, {}, register)", n.y_rows, channel));
  TransformLoops(w, n.y_rows, "i3", "i4", "i5");
  if (n.conv != n.owner) {
    w.Emit(fmt::format("compute_at({}, {}, register)", n.conv, channel));
    TransformLoops(w, n.conv, "i1", "i2", "i3");
  }
}

}  // namespace

int FindWinogradStage(const ir::Workload& workload) {
  for (size_t id = 0; id < workload.stages.size(); ++id) {
    if (workload.stages[id].combiner != ir::Combiner::kSum) continue;
    TraceWriter probe(workload);
    probe.Emit(fmt::format("{} = algorithm({}, winograd, 2)", probe.NextStage(),
                           workload.stages[id].name));
    if (probe.status().ok()) return static_cast<int>(id);
  }
  return -1;
}

absl::Status PlanWinograd(TraceWriter& w, const PlanChoice& choice, const ir::Target& target) {
  const int id = FindWinogradStage(w.workload());
  if (id < 0) return absl::InvalidArgumentError("no 3x3 stride-1 convolution in NHWC");
  Names n;
  n.conv = w.name(id);
  const int first = w.schedule().next_name;
  w.Emit(fmt::format("s{} = algorithm({}, winograd, {})", first, n.conv, choice.winograd));
  n.rows = fmt::format("s{}", first);
  n.v = fmt::format("s{}", first + 1);
  n.u = fmt::format("s{}", first + 3);
  n.product = fmt::format("s{}", first + 4);
  n.y_rows = fmt::format("s{}", first + 5);
  // Pads and epilogues are inlined as ever; what is left must be the convolution, a map that reads
  // it, and copies that lay data out anew.
  int owner = -1;
  std::vector<int> copies;
  for (const Cluster& c : FindClusters(w, -1, -1)) {
    if (std::atoi(w.name(c.owner).c_str() + 1) >= first) continue;
    if (c.owner == id || c.anchor == id) {
      owner = c.owner;
    } else if (w.stage(c.owner).combiner == ir::Combiner::kNone && c.members.empty()) {
      copies.push_back(c.owner);
    } else {
      return absl::InvalidArgumentError("winograd: the group has several owners");
    }
  }
  HONE_RETURN_IF_ERROR(w.status());
  if (owner < 0 || w.stage(owner).spatial != w.stage(id).spatial) {
    return absl::InvalidArgumentError(
        "winograd: the epilogue has another shape than the convolution");
  }
  n.owner = w.name(owner);
  n.images = w.stage(owner).spatial[0];
  const int lanes = target.lanes;
  n.packed = w.NextStage();
  w.Emit(fmt::format("{} = pack({}, {}, [i0, i1, i3/{}, i2, i3%{}])", n.packed, n.product, n.u,
                     choice.tile.vectors * lanes, choice.tile.vectors * lanes));
  Output(w, n, choice, lanes, target);
  InputTransform(w, n, choice, lanes, target);
  Product(w, n, choice, lanes, target);
  for (int copy : copies) ScheduleMap(w, copy, 1, target);
  return w.status();
}

}  // namespace hone::schedule
