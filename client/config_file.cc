#include "client/config_file.h"

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "base/toml_file.h"
#include "client/exit_code.h"
#include "client/option_table.h"

namespace hone::client {
namespace {

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

absl::Status TakeEntry(const TomlEntry& entry, ConfigFile& config) {
  const CommandSpec* const command = entry.table.empty() ? nullptr : FindCommand(entry.table);
  if (!entry.table.empty() && command == nullptr) {
    return absl::InvalidArgumentError(fmt::format(
        "\"[{}]\" is not a command; tables are named like commands, e.g. [bench]", entry.table));
  }
  if (entry.key.empty()) return absl::OkStatus();
  const OptionSpec* option = FindOption(command, entry.key);
  if (option == nullptr) return absl::InvalidArgumentError(UnknownKey(command, entry.key));
  if (option->line_only) {
    return absl::InvalidArgumentError(
        fmt::format("\"{0}\" names what one command writes, and every other would write over it; "
                    "remove the line and give --{0} where it is wanted",
                    entry.key));
  }
  if (entry.values.size() != 1 && !option->repeated) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" takes one value, not an array", entry.key));
  }
  for (const std::string& value : entry.values) HONE_RETURN_IF_ERROR(CheckValue(*option, value));
  auto& keys = command == nullptr ? config.general : config.by_command[std::string(command->name)];
  keys.emplace(entry.key, entry.values);
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
  const auto entries = ParseToml(text, path);
  if (!entries.ok()) return WithExitCode(entries.status(), ExitCode::kUsage);
  for (const TomlEntry& entry : *entries) {
    if (auto status = TakeEntry(entry, config); !status.ok())
      return WithExitCode(Annotate(status, entry.where), ExitCode::kUsage);
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
