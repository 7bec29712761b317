#include "base/daemon_options.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "base/versions.h"

namespace hone {
namespace {

using Values = std::map<std::string, std::vector<std::string>, std::less<>>;

const DaemonOption* Find(std::span<const DaemonOption> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &DaemonOption::name);
  return found == table.end() ? nullptr : &*found;
}

absl::Status Put(const DaemonOption& option, std::string value, const std::string& where,
                 Values& values) {
  if (option.argument.empty() && value != "true" && value != "false") {
    return absl::InvalidArgumentError(
        fmt::format("{}: '{}' is true or false, not '{}'", where, option.name, value));
  }
  std::vector<std::string>& list = values[std::string(option.name)];
  if (!option.repeated && !list.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: '{}' is given twice", where, option.name));
  }
  list.push_back(std::move(value));
  return absl::OkStatus();
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

constexpr char kNoEscapes[] = "text has no escapes here: write the character itself";

absl::Status WrongAt(const std::string& where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, what));
}

// A line's key, which may be quoted, and what stands behind the `=`; nothing without one.
std::optional<std::pair<std::string_view, std::string_view>> SplitAtEquals(std::string_view line) {
  const size_t close = line.front() == '"' ? line.find('"', 1) : 0;
  const size_t equals = close == std::string_view::npos ? close : line.find('=', close);
  if (equals == std::string_view::npos) return std::nullopt;
  std::string_view key = Trim(line.substr(0, equals));
  if (close > 0 && close + 1 == key.size()) key = key.substr(1, close - 1);
  return std::pair(key, Trim(line.substr(equals + 1)));
}

absl::StatusOr<std::string_view> ValueOf(std::string_view text, const std::string& where) {
  // TOML has more, and whoever writes that means something else than its letters.
  if (text.starts_with('\'')) return WrongAt(where, "text stands in double quotes: \"…\"");
  if (text.starts_with('[') || text.starts_with('{')) {
    return WrongAt(where,
                   "expected one value; what may be said more than once gets a line each, and an "
                   "address double quotes: \"[::1]:7421\"");
  }
  if (text.empty() || text.front() != '"') return Trim(text.substr(0, text.find('#')));
  const size_t close = text.find('"', 1);
  if (text.substr(0, close).find('\\') != std::string_view::npos) return WrongAt(where, kNoEscapes);
  if (close == std::string_view::npos ||
      (close + 1 < text.size() && Trim(text.substr(close + 1)).front() != '#')) {
    return WrongAt(where, "the text does not end");
  }
  return text.substr(1, close - 1);
}

// What a program is to do instead of its work, or where this file is.
bool IsOfCommandLine(std::string_view key) {
  return key == "config" || key == "check-config" || key == "help" || key == "man" ||
         key == "version";
}

// The part of TOML that daemons need: `key = "text"`, `key = bare` and comments, a line each, and
// tables of such lines at the end.
absl::Status ReadConfig(const std::string& path, std::span<const DaemonOption> table,
                        Values& values) {
  const auto read = ReadFile(path);
  if (!read.ok()) {
    return absl::InvalidArgumentError("the configuration: " + StatusMessage(read.status()));
  }
  const std::string& text = *read;
  int number = 0;
  const DaemonOption* pairs = nullptr;  // of the table that the line is in
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    const std::string where = fmt::format("{}:{}", path, ++number);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      const std::string_view head = Trim(line.substr(0, line.find('#')));
      const std::string_view name = Trim(head.substr(1, head.find(']') - 1));
      pairs = head.back() == ']' ? Find(table, name) : nullptr;
      if (pairs == nullptr || !pairs->table) {
        return WrongAt(where, fmt::format("unknown table {}", head));
      }
      continue;
    }
    const auto split = SplitAtEquals(line);
    if (!split) return WrongAt(where, "expected key = value");
    const auto& [key, behind] = *split;
    if (key.starts_with('\'')) return WrongAt(where, "a key stands in double quotes: \"…\"");
    if (key.find('\\') != std::string_view::npos) return WrongAt(where, kNoEscapes);
    HONE_ASSIGN_OR_RETURN(const std::string_view value, ValueOf(behind, where));
    if (pairs != nullptr) {
      HONE_RETURN_IF_ERROR(Put(*pairs, fmt::format("{}={}", key, value), where, values));
      continue;
    }
    const DaemonOption* option = Find(table, key);
    if (option == nullptr || option->table || IsOfCommandLine(key)) {
      return WrongAt(where, fmt::format("unknown key '{}'", key));
    }
    HONE_RETURN_IF_ERROR(Put(*option, std::string(value), where, values));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DaemonOptions> DaemonOptions::Parse(const std::vector<std::string>& words,
                                                   std::span<const DaemonOption> table,
                                                   const std::string& default_config) {
  DaemonOptions options;
  Values given;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "-h") word = "--help";
    if (word.rfind("--", 0) != 0) {
      options.words_.emplace_back(word);
      continue;
    }
    word.remove_prefix(2);
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const DaemonOption* option = Find(table, name);
    if (option == nullptr) {
      return absl::InvalidArgumentError(fmt::format("unknown option --{}; see --help", name));
    }
    std::string value = "true";
    if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (!option->argument.empty()) {
      if (++i == words.size()) {
        return absl::InvalidArgumentError(fmt::format("--{} needs a value", name));
      }
      value = words[i];
    }
    HONE_RETURN_IF_ERROR(Put(*option, std::move(value), "command line", given));
  }
  Values file;
  const auto config = given.find("config");
  struct stat info {};
  if (config != given.end()) {
    HONE_RETURN_IF_ERROR(ReadConfig(config->second.front(), table, file));
  } else if (!default_config.empty() && ::stat(default_config.c_str(), &info) == 0) {
    HONE_RETURN_IF_ERROR(ReadConfig(default_config, table, file));
  }
  for (const DaemonOption& option : table) {
    std::vector<std::string>& values = options.values_[std::string(option.name)];
    if (const auto a = given.find(option.name); a != given.end()) {
      values = a->second;
    } else if (const auto b = file.find(option.name); b != file.end()) {
      values = b->second;
    } else if (!option.value.empty()) {
      values = {std::string(option.value)};
    }
  }
  return options;
}

std::string DaemonOptions::Text(std::string_view name) const {
  const auto found = values_.find(name);
  HONE_CHECK(found != values_.end()) << "no option " << name;
  return found->second.empty() ? "" : found->second.front();
}

std::vector<std::string> DaemonOptions::List(std::string_view name) const {
  const auto found = values_.find(name);
  HONE_CHECK(found != values_.end()) << "no option " << name;
  return found->second;
}

namespace {

std::string LeftOf(const DaemonOption& option) {
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

std::string DaemonHelp(std::string_view usage, std::span<const DaemonOption> table) {
  std::string text = fmt::format("usage: {}\n\n", usage);
  for (const DaemonOption& option : table) {
    if (option.help.empty()) continue;
    text += fmt::format("  {:<30} {}{}\n", LeftOf(option), option.help,
                        option.value.empty() ? "" : fmt::format(" (default {})", option.value));
  }
  return text;
}

std::string DaemonManPage(std::string_view name, std::string_view summary, std::string_view usage,
                          std::span<const DaemonOption> table) {
  const std::string title = Roff(name);
  std::string page = fmt::format(
      ".TH {0} 8 \"\" \"Hone {1}\" \"System Administration\"\n.SH NAME\n{0} \\- {2}\n"
      ".SH SYNOPSIS\n.nf\n{3}\n.fi\n.SH OPTIONS\n",
      title, kProgramVersion, Roff(summary), Roff(usage));
  for (const DaemonOption& option : table) {
    if (option.help.empty()) continue;
    page +=
        fmt::format(".TP\n.B {}\n{}{}\n", Roff(LeftOf(option)), Roff(option.help),
                    option.value.empty() ? "" : Roff(fmt::format(" (default {})", option.value)));
  }
  return page +
         "Every option but config, check-config, help, man and version may stand in the "
         "configuration file as name = \"value\".\n.SH SEE ALSO\n.BR hone (1)\n";
}

}  // namespace hone
