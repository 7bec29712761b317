#include "measure/cpu/cpu_device.h"

#include <sys/utsname.h>

#include <fstream>
#include <map>

#include "base/core/cpu.h"
#include "base/versions.h"
#include "measure/process_load.h"

namespace hone::measure {

namespace {

std::string Trim(const std::string& s) {
  const size_t a = s.find_first_not_of(" \t\n"), b = s.find_last_not_of(" \t\n");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return Trim(line);
}

}  // namespace

HostDevice DescribeHost(const std::string& cpuinfo, const std::string& sysfs_cpu) {
  std::map<std::string, std::string> facts;
  std::ifstream in(cpuinfo);
  for (std::string line; std::getline(in, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos)
      facts[Trim(line.substr(0, colon))] = Trim(line.substr(colon + 1));
  }
  auto fact = [&](const char* key) {
    return facts.count(key) ? facts[key] : std::string("unknown");
  };
  std::map<std::string, std::string> caches;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = sysfs_cpu + "/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = FirstLine(folder + "level"), type = FirstLine(folder + "type");
    if (!level.empty() && type != "Instruction") caches[level] = FirstLine(folder + "size");
  }
  auto cache = [&](const char* level) {
    return caches.count(level) ? caches[level] : std::string("0K");
  };
  const std::string cores = std::to_string(OnePerCore(AllowedCpus()).size());
  HostDevice d;
  d.device_class = "cpu-" + std::to_string(kCpuVersions.device_class) + ":" + fact("vendor_id") +
                   "-" + fact("cpu family") + "-" + fact("model") + "-l2." + cache("2") + "-l3." +
                   cache("3") + "-c" + cores;
  d.fingerprint = "model name: " + fact("model name") + "\nvendor: " + fact("vendor_id") +
                  "\nfamily: " + fact("cpu family") + "\nmodel: " + fact("model") +
                  "\nstepping: " + fact("stepping") + "\nl1: " + cache("1") +
                  "\nl2: " + cache("2") + "\nl3: " + cache("3") + "\ncores: " + cores + "\n";
  utsname system{};
  const std::string kernel =
      ::uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : "unknown";
  d.driver = kernel + ", microcode " + fact("microcode");
  d.cores = UsableCores();
  d.target = ir::ResolveNative("cpu:native", d.cores);
  return d;
}

const KindDevices& CpuDevices() {
  class Cpus final : public KindDevices {
   public:
    absl::StatusOr<HostDevice> Describe(int number) const override {
      HostDevice host = DescribeHost();
      host.lock = "cpu:" + std::to_string(number);
      return host;
    }
    std::unique_ptr<OthersWatch> WatchOthers(int, const MonotonicClock& clock) const override {
      return std::make_unique<ForeignLoad>(clock);
    }
    int HostCores(const ir::Target& target) const override { return target.threads; }
  };
  static const Cpus devices;
  return devices;
}

}  // namespace hone::measure
