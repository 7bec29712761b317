#include "client/arguments.h"

#include <cstdlib>

#include "base/core/check.h"

namespace hone::client {

const OptionSpec* Arguments::CheckKnown(std::string_view name) const {
  HONE_CHECK(command_ != nullptr);
  const OptionSpec* option = command_->FindOption(name);
  bool known = option != nullptr;
  for (const PositionalSpec& positional : command_->positionals) known |= positional.name == name;
  HONE_CHECK(known) << "command " << command_->name << " has no option " << name;
  return option;
}

void Arguments::Set(std::string_view name, std::vector<std::string> values, Source source) {
  CheckKnown(name);
  values_[std::string(name)] = std::move(values);
  if (source == Source::kConfig) configured_.emplace(name);
}

bool Arguments::Given(std::string_view name) const {
  CheckKnown(name);
  const auto it = values_.find(name);
  return it != values_.end() && !it->second.empty();
}

bool Arguments::GivenOnLine(std::string_view name) const {
  return Given(name) && !configured_.contains(name);
}

bool Arguments::Flag(std::string_view name) const { return Given(name) && Text(name) == "true"; }

bool Arguments::Has(std::string_view name) const {
  const OptionSpec* option = CheckKnown(name);
  return Given(name) || (option != nullptr && !option->default_text.empty());
}

std::string Arguments::Text(std::string_view name) const {
  const OptionSpec* option = CheckKnown(name);
  if (Given(name)) return values_.find(name)->second.back();
  HONE_CHECK(option != nullptr && !option->default_text.empty()) << "no value for " << name;
  return std::string(option->default_text);
}

std::string Arguments::TextOr(std::string_view name, std::string_view otherwise) const {
  return Has(name) ? Text(name) : std::string(otherwise);
}

int64_t Arguments::Integer(std::string_view name) const {
  return std::strtoll(Text(name).c_str(), nullptr, 10);
}

double Arguments::Number(std::string_view name) const {
  const OptionSpec* option = CheckKnown(name);
  const std::string text = Text(name);
  if (option != nullptr && option->kind == ValueKind::kDuration) return *ParseSeconds(text);
  return std::strtod(text.c_str(), nullptr);
}

std::vector<std::string> Arguments::List(std::string_view name) const {
  CheckKnown(name);
  const auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

}  // namespace hone::client
