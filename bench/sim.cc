#include <cstdlib>
#include <string>
#include <string_view>

#include "fmt/core.h"

#include "tests/sim/farm_simulation.h"

// Runs the simulated farm under many seeds:
//     bench-sim [--seeds N] [--from S] [--mistake NAME] [--workers N] [--builders N] [--runners N]
//               [--doubts 1] [--operators 1] [--pauses 1]
// Prints what failed, one line a seed; 1 when any did. With a mistake: what catches it, in the farm
// of OptionsFor, as the other words change it.
namespace hone::sim {
namespace {

struct Words {
  uint64_t seeds = 1000, from = 1;
  SimulationOptions options;
};

bool ParseMistake(std::string_view name, Mistake* mistake) {
  for (int m = 0; m < kNumMistakes; ++m) {
    *mistake = static_cast<Mistake>(m);
    if (NameOf(*mistake) == name) return true;
  }
  fmt::print(stderr, "no such mistake: {}; there are:\n", name);
  for (int m = 1; m < kNumMistakes; ++m) {
    fmt::print(stderr, "  {}\n", NameOf(static_cast<Mistake>(m)));
  }
  return false;
}

/// False: it has said what is wrong.
bool Parse(int argc, char** argv, Words* words) {
  SimulationOptions& options = words->options;
  // What a mistake needs first: the other words change it.
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) != "--mistake") continue;
    if (!ParseMistake(argv[i + 1], &options.mistake)) return false;
    options = OptionsFor(options.mistake, 0);
  }
  for (int i = 1; i < argc; i += 2) {
    const std::string_view word = argv[i];
    if (i + 1 == argc) {
      fmt::print(stderr, "{}: its value is missing\n", word);
      return false;
    }
    char* end = nullptr;
    const uint64_t number = std::strtoull(argv[i + 1], &end, 10);
    if (word == "--mistake") continue;
    if (end == argv[i + 1] || *end != 0) {
      fmt::print(stderr, "{} {}: not a number\n", word, argv[i + 1]);
      return false;
    }
    if (word == "--seeds") {
      words->seeds = number;
    } else if (word == "--from") {
      words->from = number;
    } else if (word == "--workers") {
      options.workers = static_cast<int>(number);
    } else if (word == "--builders") {
      options.builders = static_cast<int>(number);
    } else if (word == "--runners") {
      options.runners = static_cast<int>(number);
    } else if (word == "--doubts") {
      options.doubts = number != 0;
    } else if (word == "--operators") {
      options.operators = number != 0;
    } else if (word == "--pauses") {
      options.pauses = number != 0;
    } else {
      fmt::print(stderr, "no such option: {}\n", word);
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Words words;
  if (!Parse(argc, argv, &words)) return 2;
  uint64_t failed = 0;
  for (uint64_t seed = words.from; seed < words.from + words.seeds; ++seed) {
    words.options.seed = seed;
    FarmSimulation simulation(words.options);
    const std::string wrong = simulation.Run();
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("seed {}: {}\n", seed, wrong);
  }
  fmt::print("{} of {} seeds failed\n", failed, words.seeds);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hone::sim

int main(int argc, char** argv) { return hone::sim::Main(argc, argv); }
