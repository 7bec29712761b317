#include <cstdlib>
#include <string>
#include <string_view>

#include "fmt/core.h"

#include "tests/sim/farm_simulation.h"

// Runs the simulated farm under many seeds:
//     bench-sim --seeds N [--from S] [--mistake NAME] [--workers N] [--builders N] [--runners N]
//               [--doubts 1] [--pauses 1]
// Prints what failed, one line a seed; 1 when any did. With a mistake: what catches it.
namespace hone::sim {
namespace {

int Main(int argc, char** argv) {
  uint64_t seeds = 1000, from = 1;
  int mistake = 0;
  SimulationOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view word = argv[i];
    if (word == "--seeds") seeds = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--from") from = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--workers") options.workers = std::atoi(argv[i + 1]);
    if (word == "--builders") options.builders = std::atoi(argv[i + 1]);
    if (word == "--runners") options.runners = std::atoi(argv[i + 1]);
    if (word == "--doubts") options.doubts = std::atoi(argv[i + 1]) != 0;
    if (word == "--pauses") options.pauses = std::atoi(argv[i + 1]) != 0;
    if (word != "--mistake") continue;
    while (mistake < kNumMistakes && NameOf(static_cast<Mistake>(mistake)) != argv[i + 1]) {
      ++mistake;
    }
    if (mistake == kNumMistakes) {
      fmt::print(stderr, "no such mistake: {}; there are:\n", argv[i + 1]);
      for (int m = 1; m < kNumMistakes; ++m) {
        fmt::print(stderr, "  {}\n", NameOf(static_cast<Mistake>(m)));
      }
      return 2;
    }
  }
  uint64_t failed = 0;
  for (uint64_t seed = from; seed < from + seeds; ++seed) {
    options.seed = seed;
    options.mistake = static_cast<Mistake>(mistake);
    FarmSimulation simulation(options);
    const std::string wrong = simulation.Run();
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("seed {}: {}\n", seed, wrong);
  }
  fmt::print("{} of {} seeds failed\n", failed, seeds);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hone::sim

int main(int argc, char** argv) { return hone::sim::Main(argc, argv); }
