#include "base/option_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/core/check.h"

namespace hone {

void OptionParser::AddTo(CLI::App& app, std::span<const OptionSpec> options) {
  for (const OptionSpec& option : options) {
    const std::string names =
        (option.letter == '\0' ? std::string() : fmt::format("-{},", option.letter)) +
        fmt::format("--{}", option.name);
    Values& values = values_[std::string(option.name)];
    if (option.kind == ValueKind::kFlag) {
      app.add_flag_callback(names, [&values] { values.emplace_back("true"); });
      continue;
    }
    app.add_option(names, values)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

const OptionParser::Values& OptionParser::Of(std::string_view name) const {
  const auto found = values_.find(name);
  HONE_CHECK(found != values_.end()) << "no option " << name;
  return found->second;
}

std::string ParserMessage(const std::exception& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  return fmt::format("{} needs a value", text.substr(0, text.find(':')));
}

absl::Status ReadLine(std::span<const std::string> words, std::span<const OptionSpec> options,
                      OptionParser* parser, std::vector<std::string>* others) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  parser->AddTo(app, options);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // what CLI11 wants
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(ParserMessage(error));
  }
  *others = app.remaining();
  std::erase(*others, "--");
  return absl::OkStatus();
}

}  // namespace hone
