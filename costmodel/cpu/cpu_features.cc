#include "costmodel/cpu/cpu_features.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string_view>

#include "ir/cpu/cpu_target.h"

namespace hone::costmodel {

namespace {

// Nominal numbers of a core: they order candidates, they predict no clock.
/// Bytes that a lane's share of a tile multiplies in the time of a multiply-add (AMX: 1,024
/// products of bytes a cycle).
constexpr double kTileProducts = 32;
constexpr double kClock = 3.5e9;
constexpr double kL2BytesPerCycle = 32, kL3BytesPerCycle = 16, kMemoryBytesPerCycle = 6;
constexpr double kBarrierSeconds = 3e-7;
constexpr double kPhaseSeconds = 2e-7;

constexpr size_t kLanes = 39;

double Ceil(double a, double b) { return std::ceil(a / b); }
/// log2 of a ratio of two times in seconds; a nanosecond stands for nothing.
double Ratio(double a, double b) { return std::log2((a + 1e-9) / (b + 1e-9)); }

constexpr bool kLog = true;

const FeatureSchema& Columns() {
  static const FeatureSchema columns = {
      {"multiply_adds", kLog},
      {"points", kLog},
      {"reduce", kLog},
      {"rows_total", kLog},
      {"columns_total", kLog},
      {"outer", kLog},
      {"input_bytes", kLog},
      {"constant_bytes", kLog},
      {"output_bytes", kLog},
      {"channel", kLog},
      {"rows"},
      {"vectors"},
      {"tile"},
      {"live"},
      {"live_over_registers"},
      {"row_balance"},
      {"lane_use"},
      {"thread_balance"},
      {"efficiency"},
      {"columns_outside"},
      {"reduce_block", kLog},
      {"pad_guard"},
      {"pad_peeled"},
      {"pad_tile"},
      {"pad_root"},
      {"winograd2"},
      {"winograd4"},
      {"one_phase"},
      {"tile_rows"},
      {"partial_vectors"},
      {"unroll"},
      {"panel_bytes", kLog},
      {"panel_over_l2"},
      {"set_rows"},
      {"compute_us", kLog},
      {"feed_us", kLog},
      {"memory_us", kLog},
      {"transform_us", kLog},
      {"analytic_us", kLog},
      {"lanes"},
      {"feed_over_compute"},
      {"memory_over_compute"},
      {"transform_over_compute"},
      {kAnalyticOverBest},
  };
  return columns;
}

/// Bytes of an element of what the tile reads again and again.
double PanelElementBytes(const schedule::CpuSubject& subject) {
  if (subject.tile.pairs) return 2;
  int64_t bytes = subject.tile.packed.empty() ? 4 : 1;
  for (const int tensor : subject.tile.packed)
    bytes = std::max(bytes, ir::SizeOf(subject.workload.tensors[tensor].dtype));
  return static_cast<double>(bytes);
}

/// Products of a lane in the time of a multiply-add: those of one instruction; pairs of 16 bits
/// take an addition more.
double ProductsOfALane(const schedule::TileForm& tile) {
  return tile.pairs ? 1.5 : static_cast<double>(tile.dot);
}

float Log(double x) { return static_cast<float>(std::log2(1 + std::max(0.0, x))); }

}  // namespace

CpuFeatures::CpuFeatures(const schedule::Space& space)
    : space_(space), subject_(schedule::SubjectOf(space.sketches().front())) {
  FillShared();
  FindLeast();
}

double CpuFeatures::Terms::Seconds() const {
  return std::max({compute, feed, memory}) + 0.25 * std::min(compute, std::max(feed, memory)) +
         transform + barrier;
}

schedule::CpuFacts CpuFeatures::FactsOf(uint64_t id) const {
  const schedule::Space::Point point = space_.PointOf(id);
  schedule::CpuFacts facts;
  static_cast<const schedule::CpuRule&>(*point.sketch.rule)
      .Describe(point.sketch, point.values, &facts);
  return facts;
}

CpuFeatures::Terms CpuFeatures::TermsOf(const schedule::CpuFacts& f) const {
  const double lanes = subject_.lanes, threads = subject_.target.threads;
  const schedule::CpuSubject::Work& work = subject_.work;
  Terms out;
  if (!f.tiled) {
    // Rows and maps: one pass over the data.
    out.compute = work.points / (lanes * threads * kClock) * f.stall;
    out.memory = (work.input_bytes + work.output_bytes + work.constant_bytes) /
                 (kL3BytesPerCycle * kClock * threads);
    out.barrier = kPhaseSeconds;
    return out;
  }
  out.transform = f.l2_bytes / (kL2BytesPerCycle * kClock * threads) +
                  f.l3_bytes / (kL3BytesPerCycle * kClock * threads) +
                  f.operations / (lanes * threads * kClock);
  out.barrier = f.phases * kPhaseSeconds + f.barriers * kBarrierSeconds;
  AddTile(f, &out);
  return out;
}

void CpuFeatures::AddTile(const schedule::CpuFacts& f, Terms* out) const {
  const auto& t = subject_.target.As<ir::CpuTarget>();
  const schedule::CpuSubject::Work& subject = subject_.work;
  const double lanes = subject_.lanes, threads = subject_.target.threads;
  const bool rows_outside = !f.columns_outside, contraction = subject.contraction;
  const double h = static_cast<double>(f.rows), v = static_cast<double>(f.vectors);
  const double tiles_r = Ceil(f.work_rows, h), panels = Ceil(subject.columns, v * lanes);
  out->row_balance = f.work_rows / (tiles_r * Ceil(f.work_rows, tiles_r));
  out->lane_use = subject.columns / (panels * v * lanes);
  const double shares = f.shares > 0   ? f.shares
                        : rows_outside ? std::max(f.work_outer, 1.0)
                                       : panels;
  out->thread_balance = shares / (Ceil(shares, threads) * threads);
  const double live = h * v + v + 1;
  const double spill = live > t.registers ? 1 + 0.6 * (live - t.registers) : 1;
  const double step = contraction ? std::max({h * v, h + v, 4.0}) : std::max(h * v * 1.2, 4.0);
  out->efficiency = h * v / (step * spill + 0.2);
  const double bytes = PanelElementBytes(subject_);
  double products = ProductsOfALane(subject_.tile);
  if (f.tile_efficiency > 0) {
    out->efficiency = f.tile_efficiency;
    products = kTileProducts / bytes;
  }
  out->compute = f.multiply_adds / (lanes * products * threads * kClock) /
                 (out->efficiency * out->row_balance * out->lane_use * out->thread_balance);
  // Each row tile streams its panel again; a panel beyond L2 comes from L3.
  const double block = f.reduce_block > 0
                           ? static_cast<double>(f.reduce_block) * f.work_reduce / subject.channel
                           : f.work_reduce;
  out->panel_bytes = contraction ? block * v * lanes * bytes : 0;
  const double rate = out->panel_bytes > 0.4 * static_cast<double>(t.l2_bytes) ? kL3BytesPerCycle
                                                                               : kL2BytesPerCycle;
  if (contraction) {
    out->feed = f.work_outer * panels * tiles_r * f.work_reduce * v * lanes * bytes /
                (rate * kClock * threads);
  }
  const double passes = f.reduce_block > 0 ? Ceil(f.work_reduce, block) : 1;
  out->memory = (subject.input_bytes * (rows_outside ? 1 : panels) / kL3BytesPerCycle +
                 subject.output_bytes * (2 * passes - 1) / kL3BytesPerCycle +
                 subject.constant_bytes * f.products / 9 / kMemoryBytesPerCycle) /
                (kClock * threads);
  out->set_rows = std::ceil(
      h *
      static_cast<double>(std::gcd(static_cast<int64_t>(subject.row_stride_bytes), int64_t{4096})) /
      4096);
  if (f.winograd == 0 && out->set_rows > 8) out->compute *= 1 + 0.04 * (out->set_rows - 8);
}

void CpuFeatures::FillShared() {
  const schedule::CpuSubject::Work& w = subject_.work;
  const double logarithms[] = {w.multiply_adds, w.points, w.reduce,      w.rows,
                               w.columns,       w.outer,  w.input_bytes, w.constant_bytes,
                               w.output_bytes,  w.channel};
  std::ranges::transform(logarithms, shared_.begin(), Log);
}

void CpuFeatures::FindLeast() {
  constexpr uint64_t kMostLooked = 1 << 14;
  const uint64_t stride = std::max<uint64_t>(1, space_.product() / kMostLooked);
  least_seconds_ = AnalyticSeconds(space_.DefaultId());
  for (uint64_t id = 0; id < space_.product(); id += stride) {
    if (space_.Admits(id)) least_seconds_ = std::min(least_seconds_, AnalyticSeconds(id));
  }
}

double CpuFeatures::AnalyticSeconds(uint64_t id) const { return TermsOf(FactsOf(id)).Seconds(); }

void CpuFeatures::Extract(uint64_t id, std::span<float> row) const {
  const schedule::CpuFacts f = FactsOf(id);
  const Terms t = TermsOf(f);
  const double live = static_cast<double>(f.rows * f.vectors + f.vectors + 1);
  auto is = [](bool b) { return b ? 1.0F : 0.0F; };
  const bool direct = f.winograd == 0;
  using schedule::Padding;
  std::ranges::copy(shared_, row.begin());
  row[kLanes] = static_cast<float>(subject_.target.As<ir::CpuTarget>().lanes *
                                   ProductsOfALane(subject_.tile));
  float* at = row.data() + shared_.size();
  const auto put = [&at](double x) { *at++ = static_cast<float>(x); };
  put(static_cast<double>(f.rows));
  put(static_cast<double>(f.vectors));
  put(static_cast<double>(f.rows * f.vectors));
  put(live);
  put(live / subject_.target.As<ir::CpuTarget>().registers);
  put(t.row_balance);
  put(t.lane_use);
  put(t.thread_balance);
  put(t.efficiency);
  put(is(f.columns_outside) + is(f.ahead));  // 2: and panels are fetched ahead
  put(Log(static_cast<double>(f.reduce_block)));
  put(is(direct && f.padding == Padding::kGuard));
  put(is(direct && f.padding == Padding::kPeeled));
  put(is(direct && f.padding == Padding::kTile));
  put(is(direct && f.padding == Padding::kRoot));
  put(is(f.winograd == 2));
  put(is(f.winograd == 4));
  put(is(f.one_phase));
  put(static_cast<double>(f.tile_rows));
  put(static_cast<double>(f.partial_vectors));
  put(static_cast<double>(f.unroll));
  put(Log(t.panel_bytes));
  put(t.panel_bytes / static_cast<double>(subject_.target.As<ir::CpuTarget>().l2_bytes));
  put(t.set_rows);
  put(Log(t.compute * 1e6));
  put(Log(t.feed * 1e6));
  put(Log(t.memory * 1e6));
  put(Log(t.transform * 1e6));
  put(Log(t.Seconds() * 1e6));
  ++at;  // lanes
  put(Ratio(t.feed, t.compute));
  put(Ratio(t.memory, t.compute));
  put(Ratio(t.transform, t.compute));
  put(Ratio(t.Seconds(), least_seconds_));
}

const FeaturesOfKind& CpuFeaturesOf() {
  class Kind final : public FeaturesOfKind {
   public:
    const FeatureSchema& columns() const override { return Columns(); }
    std::unique_ptr<const CandidateFeatures> Of(const schedule::Space& space) const override {
      return std::make_unique<CpuFeatures>(space);
    }
  };
  static const Kind kind;
  return kind;
}

}  // namespace hone::costmodel
