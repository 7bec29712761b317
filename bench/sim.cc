#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "fmt/core.h"

#include "base/program_options.h"
#include "tests/sim/farm_simulation.h"

// Runs the simulated farm under many seeds:
//     bench-sim [--seeds N] [--from S] [--mistake NAME] [--workers N] [--builders N] [--runners N]
//               [--doubts 1] [--operators 1] [--pauses 1]
// Prints what failed, one line a seed; 1 when any did. With a mistake: what catches it, in the farm
// of OptionsFor, as the other words change it.
namespace hone::sim {
namespace {

struct Words {
  uint64_t seeds = 0, from = 0;
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

constexpr std::array kOptions = {
    OptionSpec{.name = "seeds",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "how many",
               .default_text = "1000",
               .low = 0},
    OptionSpec{.name = "from",
               .kind = ValueKind::kInteger,
               .argument = "S",
               .help = "the first one",
               .default_text = "1",
               .low = 0},
    OptionSpec{.name = "mistake",
               .kind = ValueKind::kText,
               .argument = "NAME",
               .help = "what is done wrong, to see who catches it"},
    OptionSpec{.name = "workers",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "devices",
               .low = 0},
    OptionSpec{.name = "builders",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "workers that only build",
               .low = 0},
    OptionSpec{.name = "runners",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "workers that only run",
               .low = 0},
    OptionSpec{.name = "doubts",
               .kind = ValueKind::kInteger,
               .argument = "0|1",
               .help = "whether devices are doubted"},
    OptionSpec{.name = "operators",
               .kind = ValueKind::kInteger,
               .argument = "0|1",
               .help = "whether operators step in"},
    OptionSpec{.name = "pauses",
               .kind = ValueKind::kInteger,
               .argument = "0|1",
               .help = "whether sessions are paused"},
};

/// Nothing: it has said what is wrong.
std::optional<Words> WordsOf(int argc, char** argv) {
  const auto read = ReadOptions("bench-sim [OPTION…]", kOptions, argc, argv);
  if (!read) return std::nullopt;
  Words words;
  words.seeds = static_cast<uint64_t>(read->Integer("seeds"));
  words.from = static_cast<uint64_t>(read->Integer("from"));
  SimulationOptions& options = words.options;
  // What a mistake needs first: the other words change it.
  if (read->Given("mistake")) {
    if (!ParseMistake(read->Text("mistake"), &options.mistake)) return std::nullopt;
    options = OptionsFor(options.mistake, 0);
  }
  const auto set = [&](const char* name, auto* into) {
    if (read->Given(name)) *into = static_cast<std::decay_t<decltype(*into)>>(read->Integer(name));
  };
  set("workers", &options.workers);
  set("builders", &options.builders);
  set("runners", &options.runners);
  set("doubts", &options.doubts);
  set("operators", &options.operators);
  set("pauses", &options.pauses);
  return words;
}

int Main(int argc, char** argv) {
  std::optional<Words> read = WordsOf(argc, argv);
  if (!read) return 2;
  Words& words = *read;
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
