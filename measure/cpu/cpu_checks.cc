#include "measure/cpu/cpu_checks.h"

#include <filesystem>
#include <map>
#include <sstream>

#include "fmt/format.h"

#include "base/core/cpu.h"
#include "base/file.h"
#include "ir/target.h"

namespace hone::measure {
namespace {

/// Jiffies of /proc/stat's first line: all, and those of work.
struct CpuTimes {
  int64_t total = 0;
  int64_t busy = 0;
};

bool ReadCpuTimes(const std::string& path, CpuTimes* times) {
  const auto text = ReadFile(path);
  if (!text.ok() || !text->starts_with("cpu ")) return false;
  std::istringstream fields(text->substr(4, text->find('\n') - 4));
  // user nice system idle iowait irq softirq steal
  int64_t field = 0;
  for (int i = 0; i < 8 && fields >> field; ++i) {
    times->total += field;
    if (i != 3 && i != 4) times->busy += field;
  }
  return times->total > 0;
}

class Checks final : public KindChecks {
 public:
  std::vector<Finding> Check(const SystemPaths& paths, const MonotonicClock& clock) const override {
    return {CheckInstructions(), CheckCores(), CheckGovernor(paths),
            CheckForeignLoad(paths, clock)};
  }
};

}  // namespace

Finding CheckInstructions() {
  const std::string native = ir::ResolveNative("cpu:native", 1);
  ir::Target target;
  std::string why;
  if (ir::ParseTarget(native, &target, &why) && ir::HostCanRun(target, &why)) {
    return Good("instructions", native.substr(0, native.find(',')));
  }
  const size_t remedy = why.find("; ");
  return {"instructions", Health::kFault, why.substr(0, remedy),
          remedy == std::string::npos ? "" : why.substr(remedy + 2)};
}

Finding CheckCores() {
  const size_t allowed = AllowedCpus().size();
  const double limit = CgroupCpuLimit();
  const std::string found = fmt::format("{} CPUs allowed, {} cores usable", allowed, UsableCores());
  if (limit == 0 || limit >= static_cast<double>(OnePerCore(AllowedCpus()).size())) {
    return Good("cores", found);
  }
  return {"cores", Health::kWarning,
          fmt::format("{}; the control group grants {:.2f} CPUs", found, limit),
          "times vary when the limit is hit: raise it, or use --threads with a smaller number"};
}

Finding CheckGovernor(const SystemPaths& paths) {
  std::map<std::string, int> governors;
  std::error_code error;
  for (const auto& cpu :
       std::filesystem::directory_iterator(paths.sys + "/devices/system/cpu", error)) {
    const auto text = ReadFile((cpu.path() / "cpufreq" / "scaling_governor").string());
    if (text.ok()) ++governors[text->substr(0, text->find('\n'))];
  }
  if (governors.empty())
    return Good("governor", "the system reports none (a virtual machine, or a fixed clock)");
  std::string found;
  for (const auto& [name, count] : governors) {
    found += fmt::format("{}{} on {} CPUs", found.empty() ? "" : ", ", name, count);
  }
  if (governors.size() == 1 && governors.begin()->first == "performance")
    return Good("governor", found);
  return {
      "governor", Health::kWarning, found,
      "clock frequencies may change while Hone measures: cpupower frequency-set -g performance"};
}

Finding CheckForeignLoad(const SystemPaths& paths, const MonotonicClock& clock) {
  CpuTimes before, after;
  const std::string path = paths.proc + "/stat";
  bool known = ReadCpuTimes(path, &before);
  clock.SleepNs(200'000'000);
  known = ReadCpuTimes(path, &after) && known;
  if (!known || after.total <= before.total) {
    return {"foreign load", Health::kWarning, fmt::format("'{}' cannot be read", path),
            "mount /proc; without it Hone cannot tell whether others disturb its measurements"};
  }
  const double share = static_cast<double>(after.busy - before.busy) /
                       static_cast<double>(after.total - before.total);
  const std::string found = fmt::format("{:.0f} % of all CPUs busy", 100 * share);
  if (share <= 0.1) return Good("foreign load", found);
  return {"foreign load", Health::kWarning, found,
          "other programs disturb measurements: stop them while tuning (top shows them)"};
}

const KindChecks& CpuChecks() {
  static const Checks checks;
  return checks;
}

}  // namespace hone::measure
