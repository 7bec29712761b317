#include "base/program_options.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fmt/format.h"

#include "base/file.h"
#include "base/option_parser.h"
#include "base/status.h"
#include "base/toml_file.h"
#include "base/versions.h"

namespace hone {
namespace {

using Values = std::map<std::string, std::vector<std::string>, std::less<>>;

const OptionSpec* Find(std::span<const OptionSpec> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &OptionSpec::name);
  return found == table.end() ? nullptr : &*found;
}

/// A flag that is given twice is a flag; texts are the program's to judge, also empty ones.
absl::Status CheckGiven(const OptionSpec& option, const std::vector<std::string>& values) {
  if (!option.repeated && option.kind != ValueKind::kFlag && values.size() > 1)
    return absl::InvalidArgumentError(fmt::format("'{}' is given twice", option.name));
  if (option.kind == ValueKind::kText || option.kind == ValueKind::kFile) return absl::OkStatus();
  for (const std::string& value : values) HONE_RETURN_IF_ERROR(CheckValue(option, value));
  return absl::OkStatus();
}

// What a program is to do instead of its work, or where this file is.
bool IsOfCommandLine(std::string_view key) {
  return key == "config" || key == "check-config" || key == "help" || key == "man" ||
         key == "version";
}

absl::Status TakeEntry(const TomlEntry& entry, std::span<const OptionSpec> table, Values& values) {
  if (!entry.table.empty()) {
    const OptionSpec* const pairs = Find(table, entry.table);
    if (pairs == nullptr || !pairs->pairs)
      return absl::InvalidArgumentError(fmt::format("unknown table [{}]", entry.table));
    for (const std::string& value : entry.values)
      values[entry.table].push_back(fmt::format("{}={}", entry.key, value));
    return absl::OkStatus();
  }
  const OptionSpec* const option = Find(table, entry.key);
  if (option == nullptr || option->pairs || IsOfCommandLine(entry.key))
    return absl::InvalidArgumentError(fmt::format("unknown key '{}'", entry.key));
  if (entry.array && !option->repeated)
    return absl::InvalidArgumentError(fmt::format("'{}' takes one value, not an array", entry.key));
  values[entry.key] = entry.values;
  return CheckGiven(*option, entry.values);
}

absl::Status ReadConfig(const std::string& path, std::span<const OptionSpec> table,
                        Values& values) {
  const auto text = ReadFile(path);
  if (!text.ok())
    return absl::InvalidArgumentError("the configuration: " + StatusMessage(text.status()));
  HONE_ASSIGN_OR_RETURN(const std::vector<TomlEntry> entries, ParseToml(*text, path));
  for (const TomlEntry& entry : entries) {
    if (const absl::Status taken = TakeEntry(entry, table, values); !taken.ok())
      return Annotate(taken, entry.where);
  }
  return absl::OkStatus();
}

/// Takes what looks like an option out of the others: there is none of that name.
absl::Status UnknownOption(std::span<const OptionSpec> table, const std::string& word) {
  std::vector<Suggestion> names;
  for (const OptionSpec& option : table) {
    if (!option.help.empty()) names.push_back({option.name, option.meant});
  }
  const std::string name = word.substr(0, word.find('='));
  const std::string_view near = Nearest(name, names);
  return absl::InvalidArgumentError(
      fmt::format("unknown option {}; {}see --help", name,
                  near.empty() ? "" : fmt::format("did you mean --{}? ", near)));
}

}  // namespace

absl::StatusOr<ProgramOptions> ProgramOptions::Parse(const std::vector<std::string>& words,
                                                     std::span<const OptionSpec> table,
                                                     const std::string& default_config) {
  ProgramOptions options;
  OptionParser line;
  HONE_RETURN_IF_ERROR(ReadLine(words, table, &line, &options.words_));
  for (const std::string& word : options.words_) {
    if (word.starts_with("--")) return UnknownOption(table, word);
  }
  for (const OptionSpec& option : table) {
    if (const absl::Status given = CheckGiven(option, line.Of(option.name)); !given.ok())
      return Annotate(given, "command line");
  }
  Values file;
  struct stat info {};
  if (Find(table, "config") != nullptr && !line.Of("config").empty()) {
    HONE_RETURN_IF_ERROR(ReadConfig(line.Of("config").front(), table, file));
  } else if (!default_config.empty() && ::stat(default_config.c_str(), &info) == 0) {
    HONE_RETURN_IF_ERROR(ReadConfig(default_config, table, file));
  }
  for (const OptionSpec& option : table) {
    std::vector<std::string>& values = options.values_[std::string(option.name)];
    values = line.Of(option.name);
    if (!values.empty()) continue;
    if (const auto in_file = file.find(option.name); in_file != file.end()) {
      values = in_file->second;
    } else if (!option.default_text.empty()) {
      values = {std::string(option.default_text)};
    }
  }
  return options;
}

std::string ProgramOptions::Text(std::string_view name) const {
  const auto found = values_.find(name);
  HONE_CHECK(found != values_.end()) << "no option " << name;
  return found->second.empty() ? "" : found->second.front();
}

std::vector<std::string> ProgramOptions::List(std::string_view name) const {
  const auto found = values_.find(name);
  HONE_CHECK(found != values_.end()) << "no option " << name;
  return found->second;
}

int64_t ProgramOptions::Integer(std::string_view name) const {
  return std::strtoll(Text(name).c_str(), nullptr, 10);
}

double ProgramOptions::Number(std::string_view name) const {
  return std::strtod(Text(name).c_str(), nullptr);
}

namespace {

std::string LeftOf(const OptionSpec& option) {
  return fmt::format("--{}{}{}", option.name, option.argument.empty() ? "" : " ", option.argument);
}

/// roff needs its control characters escaped.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '-') out += '\\';
    out += c == '\\' ? std::string("\\e") : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string ProgramHelp(std::string_view usage, std::span<const OptionSpec> table) {
  std::string text = fmt::format("usage: {}\n\n", usage);
  for (const OptionSpec& option : table) {
    if (option.help.empty()) continue;
    text += fmt::format(
        "  {:<30} {}{}\n", LeftOf(option), option.help,
        option.default_text.empty() ? "" : fmt::format(" (default {})", option.default_text));
  }
  return text;
}

std::optional<ProgramOptions> ReadOptions(std::string_view usage, std::span<const OptionSpec> table,
                                          int argc, char** argv) {
  std::vector<OptionSpec> all(table.begin(), table.end());
  all.push_back(DaemonOption("help", "", "", "print this"));
  auto options = ProgramOptions::Parse({argv + 1, argv + argc}, all, "");
  if (options.ok() && !options->Flag("help")) return *std::move(options);
  if (!options.ok()) fmt::print(stderr, "{}\n", StatusMessage(options.status()));
  fmt::print(stderr, "{}", ProgramHelp(usage, all));
  return std::nullopt;
}

std::string DaemonManPage(std::string_view name, std::string_view summary, std::string_view usage,
                          std::span<const OptionSpec> table) {
  const std::string title = Roff(name);
  std::string page = fmt::format(
      ".TH {0} 8 \"\" \"Hone {1}\" \"System Administration\"\n.SH NAME\n{0} \\- {2}\n"
      ".SH SYNOPSIS\n.nf\n{3}\n.fi\n.SH OPTIONS\n",
      title, kProgramVersion, Roff(summary), Roff(usage));
  for (const OptionSpec& option : table) {
    if (option.help.empty()) continue;
    page += fmt::format(
        ".TP\n.B {}\n{}{}\n", Roff(LeftOf(option)), Roff(option.help),
        option.default_text.empty() ? "" : Roff(fmt::format(" (default {})", option.default_text)));
  }
  return page +
         "Every option but config, check-config, help, man and version may stand in the "
         "configuration file as name = \"value\".\n.SH SEE ALSO\n.BR hone (1)\n";
}

}  // namespace hone
