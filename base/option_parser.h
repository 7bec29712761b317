#pragma once

#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/option_spec.h"

namespace CLI {
class App;
}

namespace hone {

/// What stands on a command line for each option of a table, by CLI11. Not thread-safe.
class OptionParser {
 public:
  using Values = std::vector<std::string>;

  /// Adds the options to what `app` reads; it fills this object, which must outlive it.
  void AddTo(CLI::App& app, std::span<const OptionSpec> options);

  /// As given, in order, unchecked; a flag's is "true". The option must have been added.
  const Values& Of(std::string_view name) const;
  const std::map<std::string, Values, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Values, std::less<>> values_;
};

/// An error that CLI11 threw, in our words: it says "--seed: 1 required TEXT missing".
std::string ParserMessage(const std::exception& error);

/// Reads `words`, which follow the program's name, for a program without commands. What is no
/// option comes back in order, also what looks like one that is not in the table; "--" ends the
/// options. kInvalidArgument: an option lacks its value.
absl::Status ReadLine(std::span<const std::string> words, std::span<const OptionSpec> options,
                      OptionParser* parser, std::vector<std::string>* others);

}  // namespace hone
