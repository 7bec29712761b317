#include "tests/kinds/abacus.h"

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "costmodel/features.h"
#include "graph/group_limits.h"
#include "ir/kind_facts.h"
#include "measure/device.h"
#include "measure/device_probe.h"
#include "measure/kind_checks.h"
#include "schedule/kind_sketches.h"

namespace hone::abacus {
namespace {

constexpr std::string_view kPrefix = "abacus:rods=";

int RodsOf(const ir::Target& target) { return target.As<AbacusTarget>().rods; }

class Kind final : public ir::TargetKind {
 public:
  std::string_view name() const override { return "abacus"; }
  std::string_view accepted() const override { return "abacus:rods=1..64"; }
  bool Parse(std::string_view text, ir::Target* target, std::string* why) const override {
    auto details = std::make_shared<AbacusTarget>();
    if (text.substr(0, kPrefix.size()) == kPrefix) {
      const char* const end = text.data() + text.size();
      const auto [stop, code] = std::from_chars(text.data() + kPrefix.size(), end, details->rods);
      if (code == std::errc() && stop == end && details->rods >= 1 && details->rods <= 64) {
        target->kind = name();
        target->family = "abacus";
        target->text = text;
        target->details = std::move(details);
        return true;
      }
    }
    *why = "rods must be a number from 1 to 64";
    return false;
  }
  std::string ResolveNative(std::string_view text, int) const override {
    return text == "abacus:native" ? "abacus:rods=13" : std::string(text);
  }
  bool HostCanRun(const ir::Target& target, std::string* why) const override {
    if (RodsOf(target) <= 13) return true;
    *why = "code for " + target.text + " needs more rods than the 13 of this host";
    return false;
  }
  bool Covers(const ir::Target& device, const ir::Target& code) const override {
    return RodsOf(code) <= RodsOf(device);
  }
  double MostFlopPerNs(const ir::Target& target) const override { return 1e3 * RodsOf(target); }
  double MostBytesPerNs(const ir::Target&) const override { return 1e5; }
  uint64_t PackageBits(const ir::Target&) const override { return uint64_t{1} << 63; }
};

class Facts final : public ir::KindFacts {
 public:
  KindVersions versions() const override { return {7, 8, 9}; }
};

class Limits final : public graph::KindLimits {
 public:
  graph::GroupLimits Of(const ir::Target&) const override { return {.row_bytes = 0}; }
};

/// The first loop of the last Stage is launched, or its last one is cut into blocks that are
/// vectors.
class Blocks final : public schedule::SketchRule {
 public:
  absl::Status Emit(const schedule::Sketch&, const schedule::Values& values,
                    schedule::TraceWriter& writer) const override {
    const ir::Stage& last = writer.workload().stages.back();
    if (values[0] == 1) {
      if (!last.spatial.empty() && last.scan < 0) writer.Emit("parallel(" + last.name + ".i0, 1)");
      return writer.status();
    }
    const std::vector<ir::Stage> stages = writer.workload().stages;
    for (const ir::Stage& stage : stages) {
      if (stage.spatial.empty() || stage.scan >= 0) continue;
      const std::string loop = stage.name + ".i" + std::to_string(stage.num_spatial() - 1);
      writer.Emit("split(" + loop + ", " + std::to_string(values[0]) + ", mask)");
      writer.Emit("vectorize(" + loop + ".1)");
    }
    return writer.status();
  }
  absl::StatusOr<schedule::Values> Read(const schedule::Sketch&,
                                        const schedule::Trace& trace) const override {
    schedule::Values values{1};
    if (!trace.instructions.empty() && trace.instructions[0].primitive == "split") {
      values[0] = std::stoll(trace.instructions.front().positional.at(1));
    }
    return values;
  }
  std::optional<schedule::Values> Default(const schedule::Sketch&) const override {
    return schedule::Values{1};
  }
};

class BlockSketches final : public schedule::KindSketches {
 public:
  std::vector<schedule::Sketch> Sketches(const ir::Workload&, const ir::Target& target,
                                         ir::AccuracyClass) const override {
    return {BlocksOf(target)};
  }
  schedule::Sketch DefaultSketch(const ir::Workload&, const ir::Target& target) const override {
    return BlocksOf(target);
  }

 private:
  static schedule::Sketch BlocksOf(const ir::Target& target) {
    static const Blocks rule;
    schedule::DecisionTable table{"block", {"block"}, {}};
    for (int64_t block = 1; block <= RodsOf(target); block *= 2) table.rows.push_back({block});
    return {.name = "blocks", .tables = {table}, .rule = &rule, .form = nullptr};
  }
};

/// Blocks as wide as the abacus are best.
class Features final : public costmodel::CandidateFeatures {
 public:
  explicit Features(const schedule::Space& space) : space_(space) {}
  void Extract(uint64_t id, std::span<float> row) const override {
    row[0] = static_cast<float>(space_.ValueOf(id, "block"));
  }
  double AnalyticSeconds(uint64_t id) const override {
    return 1.0 / static_cast<double>(space_.ValueOf(id, "block"));
  }

 private:
  const schedule::Space& space_;
};

class FeatureMaker final : public costmodel::FeaturesOfKind {
 public:
  const costmodel::FeatureSchema& columns() const override {
    static const costmodel::FeatureSchema columns = {{"block"}, {costmodel::kAnalyticOverBest}};
    return columns;
  }
  std::unique_ptr<const costmodel::CandidateFeatures> Of(
      const schedule::Space& space) const override {
    return std::make_unique<Features>(space);
  }
};

class BeadProbe final : public measure::DeviceProbe {
 public:
  absl::StatusOr<measure::DeviceRates> Rates(const ir::Target& target,
                                             const MonotonicClock&) const override {
    const double beads = 1e12 * RodsOf(target);
    return measure::DeviceRates{.operations_per_second = {beads, 3 * beads, 0},
                                .caches = {{1 << 20, 64e12}},
                                .memory_bytes_per_second = 8e12};
  }
  absl::StatusOr<double> Noise(const ir::Target&, const MonotonicClock&) const override {
    return 0.0;
  }
  int64_t CacheBytes(const ir::Target&) const override { return 0; }
};

class Beads final : public measure::KindChecks {
 public:
  std::vector<measure::Finding> Check(const measure::SystemPaths&,
                                      const MonotonicClock&) const override {
    return {measure::Good("rods", "13 straight rods"),
            {"beads", measure::Health::kWarning, "three beads are worn", "turn them"}};
  }
};

double others_here = 0;

class Neighbours final : public measure::OthersWatch {
 public:
  std::optional<double> SinceLast() override {
    const char* told = std::getenv("ABACUS_OTHERS");  // a program's; a test sets others_here
    return told == nullptr ? others_here : std::atof(told);
  }
};

class Shelf final : public measure::KindDevices {
 public:
  absl::StatusOr<measure::HostDevice> Describe(int number) const override {
    if (number > 9) return absl::NotFoundError("only ten of them are here");
    measure::HostDevice device;
    device.device_class = "abacus-8:rods13";
    device.fingerprint = "rods: 13\n";
    device.driver = "a hand";
    device.target = "abacus:rods=13";
    device.lock = "abacus-" + std::to_string(number);
    return device;
  }
  std::unique_ptr<measure::OthersWatch> WatchOthers(int, const MonotonicClock&) const override {
    return std::make_unique<Neighbours>();
  }
};

/// Linked into a program, this makes it know the abacus.
const bool kRegistered = (Register(), true);

}  // namespace

void Register() {
  static const Kind kind;
  static const Facts facts;
  static const Limits limits;
  static const BlockSketches sketches;
  static const FeatureMaker features;
  static const BeadProbe probe;
  static const Shelf shelf;
  static const Beads beads;
  static const bool once = [] {
    ir::RegisterTargetKind(&kind);
    ir::FactsOfKinds().Add("abacus", &facts);
    graph::LimitsOfKinds().Add("abacus", &limits);
    schedule::SketchesOfKinds().Add("abacus", &sketches);
    costmodel::FeaturesOfKinds().Add("abacus", &features);
    measure::ProbesOfKinds().Add("abacus", &probe);
    measure::DevicesOfHost().Add("abacus", &shelf);
    measure::ChecksOfKinds().Add("abacus", &beads);
    return true;
  }();
  static_cast<void>(once);
}

void SetOthers(double others) { others_here = others; }

ir::Target TargetOf(const char* text) {
  Register();
  ir::Target target;
  std::string why;
  HONE_CHECK(ir::ParseTarget(text, &target, &why)) << why;
  return target;
}

}  // namespace hone::abacus
