#include "bench/farm/farm_tasks.h"

#include "fmt/format.h"

#include "bench/kernel_workloads.h"

namespace hone::bench {

std::vector<std::string> FarmTargets() {
  std::vector<std::string> targets;
  for (const int threads : {1, 2, 4, 8}) {
    for (const char* isa : {"avx512", "avx2"}) {
      targets.push_back(fmt::format("cpu:{},threads={}", isa, threads));
    }
  }
  return targets;
}

std::vector<proto::TaskSpec> FarmTasks(int count) {
  std::vector<proto::TaskSpec> tasks;
  for (int i = 0; i < count; ++i) {
    const int step = i / 3;
    const int channels = 64 + 32 * (step % 8), size = 14 + 7 * (step / 8);
    std::string text = i % 3 == 0   ? ProductText(128 + 32 * step, 256 + 64 * (step % 8), 512)
                       : i % 3 == 1 ? Convolution3Text(channels, size)
                                    : Convolution1Text(channels, 2 * channels, size);
    tasks.push_back({.workload = std::move(text),
                     .name = fmt::format("task {}", i),
                     .count = 1 + i % 4,
                     .flop = 1e9});
  }
  return tasks;
}

}  // namespace hone::bench
