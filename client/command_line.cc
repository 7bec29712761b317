#include "client/command_line.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include <CLI/CLI.hpp>

#include "base/option_parser.h"
#include "base/status.h"
#include "client/exit_code.h"

namespace hone::client {
namespace {

using Values = std::vector<std::string>;

absl::Status Usage(std::string_view command, const std::string& message) {
  const std::string program =
      command.empty() ? std::string("hone") : fmt::format("hone {}", command);
  return WithExitCode(
      absl::InvalidArgumentError(fmt::format("{}; see `{} --help`", message, program)),
      ExitCode::kUsage);
}

/// One command's side of the line.
struct Parser {
  const CommandSpec* command = nullptr;
  CLI::App* app = nullptr;
  OptionParser options;
  std::map<std::string, Values, std::less<>> positionals;
};

void AddCommand(CLI::App& top, Parser& parser) {
  parser.app = top.add_subcommand(std::string(parser.command->name));
  parser.app->set_help_flag();
  parser.app->allow_extras();
  parser.options.AddTo(*parser.app, CommonOptions());
  parser.options.AddTo(*parser.app, parser.command->options);
  for (const PositionalSpec& positional : parser.command->positionals) {
    CLI::Option* const option = parser.app
                                    ->add_option(std::string(positional.name),
                                                 parser.positionals[std::string(positional.name)])
                                    ->expected(1);
    if (positional.repeated) {
      option->expected(1, CLI::detail::expected_max_vector_size);
    } else {
      option->allow_extra_args(false);
    }
  }
}

absl::Status UnexpectedWord(const CommandSpec& command, const std::string& word) {
  if (!word.starts_with('-')) {
    return Usage(command.name, fmt::format("\"{}\" is one argument too many", word));
  }
  std::vector<Suggestion> names;
  for (const std::span<const OptionSpec> options : {command.options, CommonOptions()}) {
    for (const OptionSpec& option : options) names.push_back({option.name, option.meant});
  }
  const std::string_view near = Nearest(word.substr(0, word.find('=')), names);
  return Usage(command.name,
               fmt::format("there is no option {}{}", word,
                           near.empty() ? "" : fmt::format("; did you mean --{}?", near)));
}

/// Whether another option on the line takes the place of `option`: what config.toml says of that
/// one is then meant for other runs.
bool IsReplaced(std::string_view option, const OptionParser& line) {
  using Group = std::span<const std::string_view>;
  static constexpr std::array<std::string_view, 4> kLogs = {"db", "snapshot", "server", "traces"};
  static constexpr std::array<std::string_view, 2> kTimes = {"seconds", "minutes"};
  for (const Group group : {Group(kLogs), Group(kTimes)}) {
    if (std::find(group.begin(), group.end(), option) == group.end()) continue;
    return std::any_of(group.begin(), group.end(), [&](std::string_view other) {
      const auto at = line.values().find(other);
      return other != option && at != line.values().end() && !at->second.empty();
    });
  }
  return false;
}

absl::Status FillOption(const OptionSpec& option, const OptionParser& line,
                        const ConfigFile& config, Arguments& arguments) {
  Values given = line.Of(option.name);
  if (option.kind == ValueKind::kFlag && !given.empty()) given.resize(1);
  const std::string_view command = arguments.command()->name;
  if (given.size() > 1 && !option.repeated) {
    return Usage(command, fmt::format("--{} is given {} times", option.name, given.size()));
  }
  for (const std::string& value : given) {
    if (auto status = CheckValue(option, value); !status.ok()) {
      return Usage(command, StatusMessage(status));
    }
  }
  if (!given.empty()) {
    arguments.Set(option.name, given);
  } else if (const Values* configured = config.Find(command, option.name);
             configured != nullptr && !IsReplaced(option.name, line)) {
    // A general key suits some command; what this one allows may be less.
    for (const std::string& value : *configured) {
      if (auto status = CheckValue(option, value); !status.ok()) {
        return Usage(command, fmt::format("{}: {}", config.path, StatusMessage(status)));
      }
    }
    arguments.Set(option.name, *configured, Arguments::Source::kConfig);
  }
  if (option.required && !arguments.Given(option.name)) {
    return Usage(command, fmt::format("--{} {} is missing", option.name, option.argument));
  }
  return absl::OkStatus();
}

absl::Status FillPositional(const PositionalSpec& positional, const Values& given,
                            Arguments& arguments) {
  const std::string_view command = arguments.command()->name;
  if (given.empty() && !positional.required) return absl::OkStatus();
  const Values choices = SplitChoices(positional.choices);
  const std::string list =
      choices.empty() ? "" : fmt::format("; one of {}", fmt::join(choices, ", "));
  if (given.empty() || given.front().empty()) {
    return Usage(command, fmt::format("{} is missing{}", positional.name, list));
  }
  const auto known = [&](const char* word) {
    return choices.empty() || std::find(choices.begin(), choices.end(), word) != choices.end();
  };
  Values values = given;
  if (!choices.empty() && values.front() == "ls" && known("list")) values.front() = "list";
  if (!known(values.front().c_str())) {
    const std::vector<Suggestion> names(choices.begin(), choices.end());
    const std::string_view near = Nearest(given.front(), names);
    return Usage(command,
                 fmt::format("{}: there is no \"{}\"{}", positional.name, given.front(),
                             near.empty() ? list : fmt::format("; did you mean {}?", near)));
  }
  arguments.Set(positional.name, std::move(values));
  return absl::OkStatus();
}

absl::StatusOr<CommandLine> Finish(const Parser& parser, const ConfigFile& config, bool help) {
  CommandLine line;
  line.arguments = Arguments(*parser.command);
  if (help || !parser.options.Of("help").empty()) {
    line.action = CommandLine::Action::kHelp;
    return line;
  }
  Values extra = parser.app->remaining();
  std::erase(extra, "--");  // ends the options, and is no word itself
  if (!extra.empty()) return UnexpectedWord(*parser.command, extra.front());
  for (const PositionalSpec& positional : parser.command->positionals) {
    HONE_RETURN_IF_ERROR(FillPositional(
        positional, parser.positionals.find(positional.name)->second, line.arguments));
  }
  for (const std::span<const OptionSpec> options : {CommonOptions(), parser.command->options}) {
    for (const OptionSpec& option : options) {
      HONE_RETURN_IF_ERROR(FillOption(option, parser.options, config, line.arguments));
    }
  }
  return line;
}

/// A line whose first word is no command.
absl::Status NoCommand(const Values& remaining) {
  Values names;
  std::vector<Suggestion> suggestions;
  for (const CommandSpec& command : Commands()) {
    names.emplace_back(command.name);
    suggestions.push_back({command.name, command.meant});
  }
  const std::string& word = remaining.front();
  if (word.starts_with('-')) {
    constexpr std::array<Suggestion, 2> kOptions = {{{"help", ""}, {"version", "v|V"}}};
    const std::string_view near = Nearest(word, kOptions);
    return Usage(
        "", near.empty()
                ? fmt::format("{} comes after a command; one of {}", word, fmt::join(names, ", "))
                : fmt::format("there is no option {}; did you mean --{}?", word, near));
  }
  const std::string_view near = Nearest(word, suggestions);
  return Usage("", fmt::format("there is no command \"{}\"{}", word,
                               near.empty() ? fmt::format("; one of {}", fmt::join(names, ", "))
                                            : fmt::format("; did you mean {}?", near)));
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& words,
                                             const ConfigFile& config) {
  CLI::App top;
  top.set_help_flag();
  top.allow_extras();
  top.require_subcommand(0, 1);
  bool help = false, version = false;
  top.add_flag("-h,--help", help);
  top.add_flag("--version", version);
  std::vector<Parser> parsers(Commands().size());
  for (size_t i = 0; i < parsers.size(); ++i) {
    parsers[i].command = &Commands()[i];
    AddCommand(top, parsers[i]);
  }
  try {
    Values reversed(words.rbegin(), words.rend());    // what CLI11 wants
    if (!words.empty() && words.front() == "help") {  // `hone help run`
      reversed.pop_back();
      reversed.insert(reversed.begin(), "--help");
    }
    top.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    const std::string message = ParserMessage(error);
    for (const Parser& parser : parsers) {
      if (parser.app->parsed()) return Usage(parser.command->name, message);
    }
    return Usage("", message);
  }
  CommandLine line;
  if (version) {
    line.arguments = Arguments(*FindCommand("version"));
    const Values others = top.remaining();
    if (std::find(others.begin(), others.end(), "--json") != others.end()) {
      line.arguments.Set("json", {"true"});
    }
    return line;
  }
  for (const Parser& parser : parsers) {
    if (parser.app->parsed()) return Finish(parser, config, help);
  }
  const bool unknown = words.size() > 1 && words.front() == "help" && !words[1].starts_with('-');
  if (!help || unknown) return NoCommand(top.remaining());
  line.action = CommandLine::Action::kHelp;
  return line;
}

}  // namespace hone::client
