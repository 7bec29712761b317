#include "costmodel/features.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "schedule/stage_cost.h"
#include "schedule/structure.h"

namespace hone::costmodel {

namespace {

// Nominal numbers of a core: they order candidates, they predict no clock.
constexpr double kClock = 3.5e9;
constexpr double kL2BytesPerCycle = 32, kL3BytesPerCycle = 16, kMemoryBytesPerCycle = 6;
constexpr double kBarrierSeconds = 3e-7;
constexpr double kPhaseSeconds = 2e-7;

constexpr size_t kNumShared = 10;  ///< columns, from the first on, that a Workload alone decides
constexpr size_t kLanes = 39;

double Ceil(double a, double b) { return std::ceil(a / b); }
/// log2 of a ratio of two times in seconds; a nanosecond stands for nothing.
double Ratio(double a, double b) { return std::log2((a + 1e-9) / (b + 1e-9)); }
float Log(double x) { return static_cast<float>(std::log2(1 + std::max(0.0, x))); }

}  // namespace

const std::array<std::string_view, kNumFeatures>& FeatureNames() {
  static constexpr std::array<std::string_view, kNumFeatures> kNames = {"multiply_adds",
                                                                        "points",
                                                                        "reduce",
                                                                        "rows_total",
                                                                        "columns_total",
                                                                        "outer",
                                                                        "input_bytes",
                                                                        "constant_bytes",
                                                                        "output_bytes",
                                                                        "channel",
                                                                        "rows",
                                                                        "vectors",
                                                                        "tile",
                                                                        "live",
                                                                        "live_over_registers",
                                                                        "row_balance",
                                                                        "lane_use",
                                                                        "thread_balance",
                                                                        "efficiency",
                                                                        "columns_outside",
                                                                        "reduce_block",
                                                                        "pad_guard",
                                                                        "pad_peeled",
                                                                        "pad_tile",
                                                                        "pad_root",
                                                                        "winograd2",
                                                                        "winograd4",
                                                                        "one_phase",
                                                                        "tile_rows",
                                                                        "partial_vectors",
                                                                        "unroll",
                                                                        "panel_bytes",
                                                                        "panel_over_l2",
                                                                        "set_rows",
                                                                        "compute_us",
                                                                        "feed_us",
                                                                        "memory_us",
                                                                        "transform_us",
                                                                        "analytic_us",
                                                                        "lanes",
                                                                        "feed_over_compute",
                                                                        "memory_over_compute",
                                                                        "transform_over_compute",
                                                                        "analytic_over_best"};
  return kNames;
}

bool IsLogarithm(int column) {
  static const std::set<std::string_view> kLogarithms = {
      "multiply_adds", "points",      "reduce",         "rows_total",   "columns_total",
      "outer",         "input_bytes", "constant_bytes", "output_bytes", "channel",
      "reduce_block",  "panel_bytes", "compute_us",     "feed_us",      "memory_us",
      "transform_us",  "analytic_us"};
  return kLogarithms.count(FeatureNames()[static_cast<size_t>(column)]) > 0;
}

FeatureExtractor::FeatureExtractor(const schedule::Space& space) : space_(space) {
  const ir::Workload& w = space.workload();
  for (const auto& t : w.tensors) {
    const double bytes = static_cast<double>(t.Bytes());
    if (t.kind == ir::TensorKind::kInput) input_bytes_ += bytes;
    if (t.kind == ir::TensorKind::kConstant) constant_bytes_ += bytes;
    if (t.output) output_bytes_ += bytes;
  }
  if (space.form().kind == schedule::PlanForm::Kind::kTile) {
    ReadTileForm();
  } else {
    for (const auto& s : w.stages) {
      double points = static_cast<double>(std::max<int64_t>(1, schedule::CostOf(s)));
      for (int a = 0; a < s.num_axes(); ++a) points *= static_cast<double>(s.Extent(a));
      points_ += points;
    }
    multiply_adds_ = points_;
  }
  FillShared();
  FindLeast();
}

void FeatureExtractor::ReadTileForm() {
  const ir::Workload& w = space_.workload();
  const schedule::TileForm& f = space_.form().tile;
  const ir::Stage& anchor = w.stages[f.anchor];
  contraction_ = schedule::RoleOf(w, anchor) == schedule::Role::kContraction;
  points_ = 1;
  for (int64_t n : anchor.spatial) points_ *= static_cast<double>(n);
  for (int64_t n : anchor.reduce) reduce_ *= static_cast<double>(n);
  multiply_adds_ = points_ * reduce_;
  rows_ = static_cast<double>(f.rows_total);
  columns_ = f.vector_axis >= 0 ? static_cast<double>(anchor.spatial[f.vector_axis]) : 1;
  outer_ = points_ / (rows_ * columns_);
  channel_ = static_cast<double>(space_.form().reduce_inner);
  if (f.row_axis >= 0) {
    for (const auto& a : schedule::AccessesOf(w, anchor)) {
      if (a.linear[f.row_axis])
        row_stride_bytes_ =
            std::max(row_stride_bytes_, 4.0 * std::abs(static_cast<double>(a.stride[f.row_axis])));
    }
  }
}

double FeatureExtractor::Terms::Seconds() const {
  return std::max({compute, feed, memory}) + 0.25 * std::min(compute, std::max(feed, memory)) +
         transform + barrier;
}

FeatureExtractor::Terms FeatureExtractor::TermsOf(const schedule::PlanChoice& c) const {
  if (space_.form().kind != schedule::PlanForm::Kind::kTile) return StreamTerms(c);
  Terms out;
  Work work{.rows = rows_, .outer = outer_, .reduce = reduce_, .multiply_adds = multiply_adds_};
  if (c.winograd > 0) {
    work = WinogradWork(c, &out);
  } else {
    AddPadding(c, &out);
  }
  AddTile(c, work, &out);
  return out;
}

/// Rows and maps: one pass over the data.
FeatureExtractor::Terms FeatureExtractor::StreamTerms(const schedule::PlanChoice& c) const {
  const double lanes = space_.form().lanes, threads = space_.target().threads;
  Terms out;
  out.compute = points_ / (lanes * threads * kClock);
  out.memory =
      (input_bytes_ + output_bytes_ + constant_bytes_) / (kL3BytesPerCycle * kClock * threads);
  out.barrier = kPhaseSeconds;
  // A chain of dependent additions waits four cycles for each.
  if (space_.form().kind == schedule::PlanForm::Kind::kRows) {
    out.compute *= 1 + 0.3 * std::max(0.0, 4.0 / static_cast<double>(c.partial_vectors) - 1);
  } else {
    out.compute *= 1 + 0.05 * std::abs(std::log2(static_cast<double>(c.unroll)) - 1);
  }
  return out;
}

FeatureExtractor::Work FeatureExtractor::WinogradWork(const schedule::PlanChoice& c,
                                                      Terms* out) const {
  const double lanes = space_.form().lanes, threads = space_.target().threads;
  const double m = c.winograd, alpha = m + 2, alpha2 = alpha * alpha;
  const double tiles = points_ / columns_ / (m * m);
  Work work;
  work.alpha2 = alpha2;
  work.rows = c.one_phase ? std::max(1.0, tiles / outer_ * static_cast<double>(c.tile_rows) /
                                              std::max(1.0, rows_ / m) * (rows_ / m))
                          : tiles;
  work.outer = std::max(1.0, tiles / work.rows) * alpha2;
  work.reduce = channel_;
  work.multiply_adds = tiles * alpha2 * channel_ * columns_;
  // Both transforms stream the transformed tensors once in and once out.
  const double traffic = 4 * alpha2 * tiles * (channel_ + columns_) * (c.one_phase ? 1.5 : 2.5);
  out->transform =
      traffic / ((c.one_phase ? kL2BytesPerCycle : kL3BytesPerCycle) * kClock * threads) +
      alpha2 * tiles * (channel_ + columns_) * 2 * alpha2 / (m + 2) / (lanes * threads * kClock);
  out->barrier = (c.one_phase ? 1 : 3) * kBarrierSeconds;
  return work;
}

void FeatureExtractor::AddPadding(const schedule::PlanChoice& c, Terms* out) const {
  const double threads = space_.target().threads;
  const bool root = c.padding == schedule::Padding::kRoot;
  out->barrier = kPhaseSeconds + (root ? kBarrierSeconds : 0);
  if (root || c.padding == schedule::Padding::kTile) {
    const double again = c.padding == schedule::Padding::kTile ? 3 : 2;
    out->transform = again * input_bytes_ / (kL2BytesPerCycle * kClock * threads);
  }
  if (c.padding == schedule::Padding::kGuard && space_.form().tile.border) {
    out->transform += 0.03 * multiply_adds_ / (space_.form().lanes * threads * kClock);
  }
}

void FeatureExtractor::AddTile(const schedule::PlanChoice& c, const Work& work, Terms* out) const {
  const ir::Target& t = space_.target();
  const double lanes = space_.form().lanes, threads = t.threads;
  const bool rows_outside = c.tile.order == schedule::TileChoice::Order::kRowsOutside;
  const double h = static_cast<double>(c.tile.rows), v = static_cast<double>(c.tile.vectors);
  const double tiles_r = Ceil(work.rows, h), panels = Ceil(columns_, v * lanes);
  out->row_balance = work.rows / (tiles_r * Ceil(work.rows, tiles_r));
  out->lane_use = columns_ / (panels * v * lanes);
  const double shares = rows_outside ? std::max(work.outer, 1.0) : panels;
  out->thread_balance = shares / (Ceil(shares, threads) * threads);
  const double live = h * v + v + 1;
  const double spill = live > t.registers ? 1 + 0.6 * (live - t.registers) : 1;
  const double step = contraction_ ? std::max({h * v, h + v, 4.0}) : std::max(h * v * 1.2, 4.0);
  out->efficiency = h * v / (step * spill + 0.2);
  out->compute = work.multiply_adds / (lanes * threads * kClock) /
                 (out->efficiency * out->row_balance * out->lane_use * out->thread_balance);
  // Each row tile streams its panel again; a panel beyond L2 comes from L3.
  const double block = c.tile.reduce_block > 0
                           ? static_cast<double>(c.tile.reduce_block) * work.reduce / channel_
                           : work.reduce;
  out->panel_bytes = contraction_ ? block * v * lanes * 4 : 0;
  const double rate = out->panel_bytes > 0.4 * static_cast<double>(t.l2_bytes) ? kL3BytesPerCycle
                                                                               : kL2BytesPerCycle;
  if (contraction_) {
    out->feed =
        work.outer * panels * tiles_r * work.reduce * v * lanes * 4 / (rate * kClock * threads);
  }
  const double passes = c.tile.reduce_block > 0 ? Ceil(work.reduce, block) : 1;
  out->memory = (input_bytes_ * (rows_outside ? 1 : panels) / kL3BytesPerCycle +
                 output_bytes_ * (2 * passes - 1) / kL3BytesPerCycle +
                 constant_bytes_ * work.alpha2 / 9 / kMemoryBytesPerCycle) /
                (kClock * threads);
  out->set_rows = std::ceil(
      h * static_cast<double>(std::gcd(static_cast<int64_t>(row_stride_bytes_), int64_t{4096})) /
      4096);
  if (c.winograd == 0 && out->set_rows > 8) out->compute *= 1 + 0.04 * (out->set_rows - 8);
}

void FeatureExtractor::FillShared() {
  const double logarithms[kNumShared] = {multiply_adds_, points_, reduce_,      rows_,
                                         columns_,       outer_,  input_bytes_, constant_bytes_,
                                         output_bytes_,  channel_};
  for (size_t k = 0; k < kNumShared; ++k) shared_[k] = Log(logarithms[k]);
  shared_[kLanes] = static_cast<float>(space_.target().lanes);
}

void FeatureExtractor::FindLeast() {
  constexpr uint64_t kMostLooked = 1 << 14;
  const uint64_t stride = std::max<uint64_t>(1, space_.product() / kMostLooked);
  least_seconds_ = AnalyticSeconds(space_.DefaultId());
  for (uint64_t id = 0; id < space_.product(); id += stride) {
    if (space_.Admits(id)) least_seconds_ = std::min(least_seconds_, AnalyticSeconds(id));
  }
}

double FeatureExtractor::AnalyticSeconds(uint64_t id) const {
  return TermsOf(space_.ChoiceOf(id)).Seconds();
}

FeatureVector FeatureExtractor::Extract(uint64_t id) const {
  const schedule::PlanChoice c = space_.ChoiceOf(id);
  const Terms t = TermsOf(c);
  const double live = static_cast<double>(c.tile.rows * c.tile.vectors + c.tile.vectors + 1);
  auto is = [](bool b) { return b ? 1.0F : 0.0F; };
  const bool direct = c.winograd == 0;
  using schedule::Padding;
  FeatureVector out = shared_;
  float* at = out.data() + kNumShared;
  const auto put = [&at](double x) { *at++ = static_cast<float>(x); };
  put(static_cast<double>(c.tile.rows));
  put(static_cast<double>(c.tile.vectors));
  put(static_cast<double>(c.tile.rows * c.tile.vectors));
  put(live);
  put(live / space_.target().registers);
  put(t.row_balance);
  put(t.lane_use);
  put(t.thread_balance);
  put(t.efficiency);
  put(is(c.tile.order == schedule::TileChoice::Order::kColumnsOutside));
  put(Log(static_cast<double>(c.tile.reduce_block)));
  put(is(direct && c.padding == Padding::kGuard));
  put(is(direct && c.padding == Padding::kPeeled));
  put(is(direct && c.padding == Padding::kTile));
  put(is(direct && c.padding == Padding::kRoot));
  put(is(c.winograd == 2));
  put(is(c.winograd == 4));
  put(is(c.one_phase));
  put(static_cast<double>(c.tile_rows));
  put(static_cast<double>(c.partial_vectors));
  put(static_cast<double>(c.unroll));
  put(Log(t.panel_bytes));
  put(t.panel_bytes / static_cast<double>(space_.target().l2_bytes));
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
  return out;
}

}  // namespace hone::costmodel
