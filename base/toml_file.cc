#include "base/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace hone {
namespace {

std::string Where(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", path, source.begin.line);
}

absl::Status Wrong(const std::string& where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", where, what));
}

/// toml++ says "Error while parsing key-value pair: cannot redefine existing integer 'seed'".
absl::Status ParseFailure(const toml::parse_error& error, const std::string& path) {
  std::string what(error.description());
  const std::string where = Where(path, error.source());
  if (what.find("redefine") != std::string::npos) {
    const size_t open = what.find('\''), close = what.rfind('\'');
    const std::string key =
        open == close ? std::string("this") : what.substr(open + 1, close - open - 1);
    return Wrong(where, fmt::format("\"{0}\" stands here a second time; what may be said more than "
                                    "once is an array: {0} = [\"a\", \"b\"]",
                                    key));
  }
  return Wrong(
      where, fmt::format("this is not `option = value` as TOML has it; text needs quotes, also an "
                         "address: \"[::1]:7421\" ({})",
                         what));
}

std::optional<std::string> ScalarText(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

absl::StatusOr<TomlEntry> EntryOf(const std::string& table, const toml::key& key,
                                  const toml::node& node, const std::string& path) {
  TomlEntry entry{
      .table = table, .key = std::string(key.str()), .where = Where(path, key.source())};
  const toml::array* const array = node.as_array();
  entry.array = array != nullptr;
  bool known = true;
  const auto add = [&](const toml::node& one) {
    std::optional<std::string> text = ScalarText(one);
    known = known && text.has_value();
    entry.values.push_back(std::move(text).value_or(""));
  };
  if (array != nullptr) {
    for (const toml::node& one : *array) add(one);
  } else {
    add(node);
  }
  if (known) return entry;
  return Wrong(entry.where,
               fmt::format("the value of \"{}\" is not a TOML string, number, true, false or an "
                           "array of them; text needs quotes",
                           entry.key));
}

/// Entries of one table in the order of the file: toml++ keeps them by name.
absl::Status AddTable(const toml::table& table, const std::string& name, const std::string& path,
                      std::vector<TomlEntry>* entries) {
  using Pair = std::pair<const toml::key*, const toml::node*>;
  std::vector<Pair> pairs;
  for (const auto& [key, node] : table) pairs.emplace_back(&key, &node);
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) {
    const auto &x = a.first->source().begin, &y = b.first->source().begin;
    return std::pair(x.line, x.column) < std::pair(y.line, y.column);
  });
  for (const auto& [key, node] : pairs) {
    if (name.empty() && node->is_table() && !node->as_table()->is_inline()) {
      const std::string inner(key->str());
      entries->push_back({.table = inner, .where = Where(path, node->source())});
      HONE_RETURN_IF_ERROR(AddTable(*node->as_table(), inner, path, entries));
      continue;
    }
    HONE_ASSIGN_OR_RETURN(TomlEntry entry, EntryOf(name, *key, *node, path));
    entries->push_back(std::move(entry));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TomlEntry>> ParseToml(std::string_view text, const std::string& path) {
  std::vector<TomlEntry> entries;
  try {
    const toml::table all = toml::parse(text, path);
    HONE_RETURN_IF_ERROR(AddTable(all, "", path, &entries));
  } catch (const toml::parse_error& error) {
    return ParseFailure(error, path);
  }
  return entries;
}

}  // namespace hone
