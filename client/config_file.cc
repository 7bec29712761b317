#include "client/config_file.h"

#include <cctype>
#include <optional>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/option_table.h"

namespace hone::client {
namespace {

using Values = std::vector<std::string>;

/// Reads one line of the file; `text` is consumed from the front.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// Nothing more but a comment.
  bool AtEnd() {
    SkipSpace();
    return text_.empty() || text_.front() == '#';
  }
  /// A bare or quoted key; empty when there is none.
  std::string TakeKey() {
    SkipSpace();
    if (!text_.empty() && (text_.front() == '"' || text_.front() == '\'')) {
      return TakeString().value_or("");
    }
    size_t n = 0;
    while (n < text_.size() && IsKey(text_[n])) ++n;
    std::string key(text_.substr(0, n));
    text_.remove_prefix(n);
    return key;
  }
  std::optional<Values> TakeValue() {
    if (!Take('[')) {
      auto one = TakeScalar();
      if (!one) return std::nullopt;
      return Values{*std::move(one)};
    }
    Values values;
    while (!Take(']')) {
      auto one = TakeScalar();
      if (!one) return std::nullopt;
      values.push_back(*std::move(one));
      if (!Take(',')) {
        if (!Take(']')) return std::nullopt;
        break;
      }
    }
    return values;
  }

 private:
  static bool IsKey(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  }
  void SkipSpace() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) {
      text_.remove_prefix(1);
    }
  }
  std::optional<std::string> TakeScalar() {
    SkipSpace();
    if (text_.empty()) return std::nullopt;
    if (text_.front() == '"' || text_.front() == '\'') return TakeString();
    size_t n = 0;
    while (n < text_.size() && (IsKey(text_[n]) || text_[n] == '.' || text_[n] == '+')) ++n;
    std::string word(text_.substr(0, n));
    const bool number = !word.empty() && (std::isdigit(static_cast<unsigned char>(word[0])) != 0 ||
                                          ((word[0] == '-' || word[0] == '+') && n > 1));
    if (!number && word != "true" && word != "false") return std::nullopt;
    text_.remove_prefix(n);
    if (word[0] == '+') word.erase(0, 1);
    std::erase(word, '_');  // 10_000
    return word;
  }
  std::optional<std::string> TakeString() {
    const char quote = text_.front();
    std::string value;
    for (size_t i = 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == quote) {
        text_.remove_prefix(i + 1);
        return value;
      }
      if (c != '\\' || quote == '\'') {
        value += c;
        continue;
      }
      if (++i == text_.size()) break;
      constexpr std::string_view kNames = "\"\\nt", kMeanings = "\"\\\n\t";
      const size_t known = kNames.find(text_[i]);
      if (known == std::string_view::npos) return std::nullopt;
      value += kMeanings[known];
    }
    return std::nullopt;
  }

  std::string_view text_;
};

/// The option of that name in `command`, or in any command when it is null.
const OptionSpec* FindOption(const CommandSpec* command, std::string_view name) {
  if (name == "help") return nullptr;
  if (command != nullptr) return command->FindOption(name);
  for (const CommandSpec& each : Commands()) {
    if (const OptionSpec* option = each.FindOption(name)) return option;
  }
  return nullptr;
}

std::string UnknownKey(const CommandSpec* command, const std::string& key) {
  std::vector<Suggestion> names;
  for (const CommandSpec& each : Commands()) {
    if (command != nullptr && &each != command) continue;
    for (const OptionSpec& option : each.options) {
      if (!option.line_only) names.push_back({option.name, option.meant});
    }
  }
  const std::string_view near = Nearest(key, names);
  const std::string scope =
      command == nullptr ? "of any command" : fmt::format("of `hone {}`", command->name);
  return fmt::format("\"{}\" is not an option {}{}", key, scope,
                     near.empty() ? "; remove the line" : fmt::format("; did you mean {}?", near));
}

absl::Status ParseLine(std::string_view line, const CommandSpec*& command, ConfigFile& config) {
  LineReader reader(line);
  if (reader.AtEnd()) return absl::OkStatus();
  if (reader.Take('[')) {
    const std::string name = reader.TakeKey();
    command = FindCommand(name);
    if (!reader.Take(']') || !reader.AtEnd() || command == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "\"[{}]\" is not a command; tables are named like commands, e.g. [bench]", name));
    }
    return absl::OkStatus();
  }
  const std::string key = reader.TakeKey();
  if (key.empty() || !reader.Take('=')) {
    return absl::InvalidArgumentError("this is not `option = value`");
  }
  const OptionSpec* option = FindOption(command, key);
  if (option == nullptr) return absl::InvalidArgumentError(UnknownKey(command, key));
  if (option->line_only) {
    return absl::InvalidArgumentError(
        fmt::format("\"{0}\" names what one command writes, and every other would write over it; "
                    "remove the line and give --{0} where it is wanted",
                    key));
  }
  auto values = reader.TakeValue();
  if (!values || !reader.AtEnd()) {
    return absl::InvalidArgumentError(
        fmt::format("the value of \"{}\" is not a TOML string, number, true, false or an array of "
                    "them on one line; text needs quotes",
                    key));
  }
  if (values->size() != 1 && !option->repeated) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" takes one value, not an array", key));
  }
  for (const std::string& value : *values) HONE_RETURN_IF_ERROR(CheckValue(*option, value));
  auto& keys = command == nullptr ? config.general : config.by_command[std::string(command->name)];
  if (!keys.emplace(key, *std::move(values)).second) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" stands here a second time", key));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<std::string>* ConfigFile::Find(std::string_view command,
                                                 std::string_view option) const {
  if (const auto table = by_command.find(std::string(command)); table != by_command.end()) {
    const auto it = table->second.find(std::string(option));
    if (it != table->second.end()) return &it->second;
  }
  const auto it = general.find(std::string(option));
  return it == general.end() ? nullptr : &it->second;
}

absl::StatusOr<ConfigFile> ParseConfig(std::string_view text, const std::string& path) {
  ConfigFile config;
  config.path = path;
  const CommandSpec* command = nullptr;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto status = ParseLine(line, command, config); !status.ok()) {
      return WithExitCode(Annotate(status, fmt::format("{}:{}", path, number)), ExitCode::kUsage);
    }
  }
  return config;
}

absl::StatusOr<ConfigFile> ReadConfig(const std::string& path) {
  const auto text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return ConfigFile{};
  HONE_RETURN_IF_ERROR(text.status());
  return ParseConfig(*text, path);
}

}  // namespace hone::client
