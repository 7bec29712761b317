#include "schedule/algorithms/winograd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/access.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/tile_table.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Floats between the slabs of the transformed tensors, so that their strides are no multiple of 4
/// KiB.
constexpr int kSlabPad = 16;

/// What is decided of a convolution by F(m×m, 3×3).
struct Choice {
  int winograd = 2;        ///< m
  bool one_phase = false;  ///< transforms computed at blocks of tile rows
  int64_t tile_rows = 2;   ///< one phase: tile rows per block
  TileChoice tile;         ///< of the product
};

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
void InputTransform(TraceWriter& w, const Names& n, const Choice& choice, int lanes,
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

void Product(TraceWriter& w, const Names& n, const Choice& choice, int lanes,
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
void Output(TraceWriter& w, const Names& n, const Choice& choice, int lanes,
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

/// Writes the whole Trace: three phases (input transform, batched product, output transform with
/// the epilogue) or one, with both transforms at blocks of tile rows.
absl::Status PlanWinograd(TraceWriter& w, const Choice& choice, const ir::Target& target) {
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
  const int lanes = target.As<ir::CpuTarget>().lanes;
  n.packed = w.NextStage();
  w.Emit(fmt::format("{} = pack({}, {}, [i0, i1, i3/{}, i2, i3%{}])", n.packed, n.product, n.u,
                     choice.tile.vectors * lanes, choice.tile.vectors * lanes));
  Output(w, n, choice, lanes, target);
  InputTransform(w, n, choice, lanes, target);
  Product(w, n, choice, lanes, target);
  for (int copy : copies) ScheduleMap(w, copy, 1, target);
  return w.status();
}

/// Columns, in the order of the tables.
enum Column : uint8_t { kRows, kVectors, kTileRows };

struct Form : CpuForm {
  using CpuForm::CpuForm;
  int m = 2;
  bool one_phase = false;
};

const Form& FormOf(const Sketch& sketch) { return static_cast<const Form&>(*sketch.form); }

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Whether the convolution's weights are constants, which are transformed before the first run.
bool HasConstantFactor(const ir::Workload& workload, const ir::Stage& convolution) {
  return std::ranges::any_of(AccessesOf(workload, convolution), [&](const Access& a) {
    return workload.tensors[a.tensor].kind == ir::TensorKind::kConstant;
  });
}

/// What a row of F(2×2)'s product costs in one phase, in multiply-adds of vectors at their peak:
/// those that are computed, and its share of weights that each block reads from beyond the second
/// cache, eight bytes a multiply-add. `rows`: of a block.
double CostOfRow(const CpuSubject& subject, const Values& v, int64_t rows) {
  constexpr double kBytesPerMultiplyAdd = 8;
  const ir::Stage& anchor = subject.workload.stages[subject.tile.anchor];
  const auto& cpu = subject.target.As<ir::CpuTarget>();
  TileForm product = subject.tile;
  product.rows_total = rows;
  const int64_t height = CeilDiv(rows, CeilDiv(rows, v[kRows]));
  const double factors =
      16 * static_cast<double>(anchor.Extent(subject.tile.reduce.back()) * anchor.spatial[3]);
  const double computed = factors / cpu.lanes /
                          TileEfficiency(subject.workload, product,
                                         {.rows = height, .vectors = v[kVectors]}, subject.target);
  const double bytes = 4 * factors;
  const double read = bytes > static_cast<double>(cpu.l2_bytes) ? bytes : 0;
  return computed + read / kBytesPerMultiplyAdd / static_cast<double>(rows);
}

class WinogradRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    std::vector<Sketch> all;
    if (subject->kind != ClusterKind::kTile || FindWinogradStage(subject->workload) < 0) return all;
    Add(subject, 2, &all);
    // Its rms error is about 8 × the direct one's.
    if (subject->accuracy != ir::AccuracyClass::kStrict) Add(subject, 4, &all);
    return all;
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const Form& form = FormOf(sketch);
    return PlanWinograd(w,
                        {.winograd = form.m,
                         .one_phase = form.one_phase,
                         .tile_rows = v[kTileRows],
                         .tile = {v[kRows], v[kVectors]}},
                        form.subject->target);
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    const Form& form = FormOf(sketch);
    const auto other = [] { return absl::InvalidArgumentError("winograd: another algorithm"); };
    const Instruction* algorithm = FindInstruction(trace, "algorithm");
    if (algorithm == nullptr || algorithm->positional.size() != 3 ||
        algorithm->positional[2] != std::to_string(form.m))
      return other();
    const std::string product = fmt::format("s{}", std::atoi(algorithm->result.c_str() + 1) + 4);
    const Instruction* pack = FindInstruction(trace, "pack", product);
    const Instruction* fused = nullptr;  // the loop that is split into the tile's rows
    const Instruction* placed = FindInstruction(trace, "compute_at", product);
    for (const Instruction& i : trace.instructions) {
      if (i.primitive == "split" && i.positional[0].starts_with(product + ".f")) fused = &i;
    }
    if (pack == nullptr || fused == nullptr || (placed != nullptr) != form.one_phase)
      return other();
    const std::vector<int64_t> rows = FactorsOf(trace, fused->positional[0]);
    // [i0, i1, i3/P, i2, i3%P]: P elements are a panel.
    const std::string& layout = pack->positional.back();
    const int64_t panel = std::atoll(layout.c_str() + layout.rfind('%') + 1);
    Values values{rows[0], panel / form.subject->target.As<ir::CpuTarget>().lanes};
    if (!form.one_phase) return values;
    const std::string owner = placed->positional[1].substr(0, placed->positional[1].find('.'));
    const std::vector<int64_t> block = FactorsOf(trace, owner + ".i1");
    if (block.empty()) return other();
    values.Add(block[0] / form.m);
    return values;
  }

  std::string_view Refusal(const Sketch& sketch, const Values& v) const override {
    const Form& form = FormOf(sketch);
    if (!form.one_phase) return {};
    // V of a block of tile rows and M of one panel live in scratch: at most L2.
    const CpuSubject& subject = *form.subject;
    const ir::Stage& anchor = subject.workload.stages[subject.tile.anchor];
    const int64_t alpha = form.m + 2;
    const int64_t tiles = v[kTileRows] * CeilDiv(anchor.spatial[2], form.m);
    const int64_t channels = anchor.Extent(subject.tile.reduce.back());
    const int64_t bytes = alpha * alpha * tiles *
                          (channels + v[kVectors] * subject.target.As<ir::CpuTarget>().lanes) * 4;
    return bytes <= subject.target.As<ir::CpuTarget>().l2_bytes
               ? ""
               : "its scratch does not fit the second cache";
  }

  /// F(2×2) of blocks of tile rows, whose error is below the direct one's. Where the weights are
  /// most of what is read, which it reads 16 / 9 times, it gains nothing; nor where they are
  /// transformed in each run, or with few channels, whose transforms cost as much as the product.
  std::optional<Values> Default(const Sketch& sketch) const override {
    constexpr int64_t kLeastTiles = 49, kLeastChannels = 16;
    constexpr double kMostUneven = 1.35;  // what it gains goes to threads that wait
    const Form& form = FormOf(sketch);
    const CpuSubject& subject = *form.subject;
    const ir::Stage& anchor = subject.workload.stages[subject.tile.anchor];
    const int64_t rows = CeilDiv(anchor.spatial[1], form.m),
                  tiles = CeilDiv(anchor.spatial[2], form.m),
                  channels =
                      std::min(anchor.Extent(subject.tile.reduce.back()), anchor.spatial[3]);
    if (!form.one_phase || form.m != 2 || rows * tiles < kLeastTiles || channels < kLeastChannels ||
        !HasConstantFactor(subject.workload, anchor))
      return std::nullopt;
    const DecisionTable &heights = sketch.tables[0], &blocks = sketch.tables[1];
    std::optional<Values> best;
    double least = 0;
    for (const auto& block : blocks.rows) {
      const double uneven =
          ThreadImbalance(anchor.spatial[0] * CeilDiv(rows, block[0]), subject.target);
      for (const auto& tile : heights.rows) {
        const Values values{tile[0], tile[1], block[0]};
        if (uneven > kMostUneven || !Refusal(sketch, values).empty()) continue;
        const double cost = uneven * CostOfRow(subject, values, block[0] * tiles);
        if (!best || cost < least - 1e-9) least = cost, best = values;
      }
    }
    return best;
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    const Form& form = FormOf(sketch);
    const CpuSubject::Work& work = form.subject->work;
    const ir::Stage& anchor = form.subject->workload.stages[form.subject->tile.anchor];
    const double alpha = form.m + 2, alpha2 = alpha * alpha;
    const int64_t images = anchor.spatial[0], tile_rows = CeilDiv(anchor.spatial[1], form.m);
    const int64_t row_tiles = CeilDiv(anchor.spatial[2], form.m);
    const auto tiles = static_cast<double>(images * tile_rows * row_tiles);
    facts->winograd = form.m;
    facts->one_phase = form.one_phase;
    if (form.one_phase) facts->tile_rows = v[kTileRows];
    facts->rows = v[kRows];
    facts->vectors = v[kVectors];
    facts->tiled = true;
    facts->products = alpha2;
    // Rows of a product are the tiles of a block of one image, or those of all images.
    facts->work_rows = form.one_phase ? static_cast<double>(v[kTileRows] * row_tiles) : tiles;
    if (form.one_phase)
      facts->shares = static_cast<double>(images * CeilDiv(tile_rows, v[kTileRows]));
    facts->work_outer = alpha2 * std::max(1.0, facts->shares);
    facts->work_reduce = work.channel;
    facts->multiply_adds = tiles * alpha2 * work.channel * work.columns;
    // Both transforms stream the transformed tensors once in and once out.
    const double elements = work.channel + work.columns;
    const double traffic = 4 * alpha2 * tiles * elements * (form.one_phase ? 1.5 : 2.5);
    (form.one_phase ? facts->l2_bytes : facts->l3_bytes) = traffic;
    facts->operations = alpha2 * tiles * elements * 2 * alpha2 / alpha;
    facts->barriers = form.one_phase ? 1 : 3;
  }

 private:
  Sketch Make(const std::shared_ptr<const CpuSubject>& subject, int m, bool one_phase) const {
    auto form = std::make_shared<Form>(subject);
    form->m = m;
    form->one_phase = one_phase;
    return {fmt::format("winograd{}/{}", m, one_phase ? "one_phase" : "three_phases"),
            {},
            nullptr,
            std::move(form)};
  }

  void Add(const std::shared_ptr<const CpuSubject>& subject, int m,
           std::vector<Sketch>* all) const {
    Sketch three = Make(subject, m, false), one = Make(subject, m, true);
    TraceWriter probe(subject->workload), probe_of_one(subject->workload);
    if (!Emit(three, {6, 1}, probe).ok()) return;
    const bool in_one_phase = Emit(one, {6, 1, 1}, probe_of_one).ok();
    const ir::Stage& stage = subject->workload.stages[subject->tile.anchor];
    const int64_t tile_rows = CeilDiv(stage.spatial[1], m),
                  tiles = tile_rows * CeilDiv(stage.spatial[2], m);
    const auto product = [&](int64_t rows) {
      DecisionTable tile = TileTable(rows, subject->tile, subject->target, true);
      std::erase_if(tile.rows, [](const auto& r) { return r[0] * r[1] < 8; });
      return tile;
    };
    three.tables = {product(stage.spatial[0] * tiles)};
    if (three.tables[0].rows.empty()) return;
    DecisionTable blocks{"block", {"tile_rows"}, {}};
    for (int64_t b : {1, 2, 3, 4, 7}) {
      if (b <= tile_rows) blocks.rows.push_back({b});
    }
    one.tables = {product(tiles), blocks};
    all->push_back(std::move(three));
    if (in_one_phase && !one.tables[0].rows.empty()) all->push_back(std::move(one));
  }
};

}  // namespace

const CpuRule& WinogradSketches() {
  static const WinogradRule rule;
  return rule;
}

}  // namespace hone::schedule
