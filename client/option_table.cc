#include "client/option_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/status.h"

namespace hone::client {
namespace {

// ---- options that several commands share ----

constexpr OptionSpec kHelp = {.name = "help", .letter = 'h', .help = "Print this help and exit"};
constexpr OptionSpec kJson = {.name = "json",
                              .help = "Print one JSON object, also for an error, and nothing else"};
constexpr std::array kCommonOptions = {kHelp, kJson};

// ---- one table a command ----

constexpr std::array kZooPositionals = {
    PositionalSpec{.name = "NAME",
                   .kind = ValueKind::kChoice,
                   .help = "Which network to write",
                   .choices = "resnet18|resnet50|mobilenet_v2|squeezenet|bert_small|bert_base|"
                              "gpt2_small|vit_small|lstm|mlp|unet"},
};
constexpr std::array kZooOptions = {
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FILE",
               .help = "Where to write; weights above 100 MB go to FILE.data beside it",
               .default_words = "NAME.onnx"},
    OptionSpec{.name = "seed",
               .kind = ValueKind::kInteger,
               .argument = "N",
               .help = "Seed of the weights",
               .default_text = "0",
               .low = 0},
};

constexpr std::array kCompletionPositionals = {
    PositionalSpec{.name = "SHELL",
                   .kind = ValueKind::kChoice,
                   .help = "Which shell the script is for",
                   .choices = "bash|zsh"},
};

constexpr std::array kManPositionals = {
    PositionalSpec{.name = "COMMAND",
                   .kind = ValueKind::kText,
                   .help = "The page of one command instead of the overview",
                   .required = false},
};
constexpr std::array kManOptions = {
    OptionSpec{.name = "output",
               .letter = 'o',
               .kind = ValueKind::kFile,
               .argument = "FOLDER",
               .help = "Write every page into this folder (hone.1, hone-run.1, ...)"},
};

constexpr std::array kCommands = {
    CommandSpec{.name = "zoo",
                .summary = "Write a well-known network with seeded weights as ONNX",
                .description =
                    "Writes the topology of a published network with weights drawn from a "
                    "seed, so that nobody needs a download to try Hone. The same name and "
                    "seed give the same bytes on every machine. The weights are not "
                    "trained: speed is real, answers mean nothing.",
                .positionals = kZooPositionals,
                .options = kZooOptions,
                .example = "hone zoo resnet18 -o resnet18.onnx"},
    CommandSpec{.name = "completion",
                .summary = "Print a completion script for bash or zsh",
                .description = "For bash: hone completion bash > "
                               "~/.local/share/bash-completion/completions/hone\n\nFor zsh: hone "
                               "completion zsh > DIR/_hone, where DIR is in $fpath.",
                .positionals = kCompletionPositionals,
                .options = {},
                .example = "source <(hone completion bash)"},
    CommandSpec{.name = "man",
                .summary = "Print or write the manual pages",
                .description =
                    "Prints a page in man(7) format; pipe it into man -l -, or write all "
                    "pages with --output.",
                .positionals = kManPositionals,
                .options = kManOptions,
                .example = "hone man run | man -l -"},
};

std::string RangeText(const OptionSpec& option) {
  const bool low = option.low > -std::numeric_limits<double>::infinity();
  const bool high = option.high < std::numeric_limits<double>::infinity();
  if (low && high) return fmt::format(" from {} to {}", option.low, option.high);
  if (low) return fmt::format(", at least {}", option.low);
  if (high) return fmt::format(", at most {}", option.high);
  return "";
}

absl::Status CheckRange(const OptionSpec& option, double number, const std::string& value,
                        std::string_view noun) {
  if (number >= option.low && number <= option.high) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is out of range; give {}{}",
                                                option.name, value, noun, RangeText(option)));
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

const OptionSpec* CommandSpec::FindOption(std::string_view option) const {
  for (const OptionSpec& spec : options) {
    if (spec.name == option) return &spec;
  }
  for (const OptionSpec& spec : kCommonOptions) {
    if (spec.name == option) return &spec;
  }
  return nullptr;
}

std::span<const CommandSpec> Commands() { return kCommands; }

const CommandSpec* FindCommand(std::string_view name) {
  for (const CommandSpec& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::span<const OptionSpec> CommonOptions() { return kCommonOptions; }

absl::Status CheckValue(const OptionSpec& option, const std::string& value) {
  const char* end = value.data() + value.size();
  switch (option.kind) {
    case ValueKind::kFlag:
      if (value == "true" || value == "false") return absl::OkStatus();
      return absl::InvalidArgumentError(
          fmt::format("--{}: \"{}\" is neither true nor false", option.name, value));
    case ValueKind::kInteger: {
      int64_t number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc() || stop != end) {
        return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is not a whole number{}",
                                                      option.name, value, RangeText(option)));
      }
      return CheckRange(option, static_cast<double>(number), value, "a whole number");
    }
    case ValueKind::kNumber: {
      double number = 0;
      const auto [stop, error] = std::from_chars(value.data(), end, number);
      if (error != std::errc() || stop != end) {
        return absl::InvalidArgumentError(
            fmt::format("--{}: \"{}\" is not a number{}", option.name, value, RangeText(option)));
      }
      return CheckRange(option, number, value, "a number");
    }
    case ValueKind::kChoice: {
      const std::vector<std::string> choices = SplitChoices(option.choices);
      if (std::find(choices.begin(), choices.end(), value) != choices.end())
        return absl::OkStatus();
      return absl::InvalidArgumentError(fmt::format("--{}: \"{}\" is not one of {}", option.name,
                                                    value, fmt::join(choices, ", ")));
    }
    case ValueKind::kText:
    case ValueKind::kFile:
      if (!value.empty()) return absl::OkStatus();
      return absl::InvalidArgumentError(fmt::format("--{}: the value is empty", option.name));
  }
  HONE_UNREACHABLE();
}

std::string Nearest(std::string_view word, std::span<const std::string> choices) {
  std::string best;
  int best_distance = 3;
  for (const std::string& choice : choices) {
    const int distance = EditDistance(word, choice);
    if (distance < best_distance && distance < static_cast<int>(choice.size())) {
      best = choice;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<std::string> SplitChoices(std::string_view choices) {
  std::vector<std::string> list;
  while (!choices.empty()) {
    const size_t bar = choices.find('|');
    list.emplace_back(choices.substr(0, bar));
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return list;
}

}  // namespace hone::client
