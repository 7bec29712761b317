#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "ir/target.h"

namespace hone::ir {

/// A registry of what a folder does differently for each kind of device: one implementation for
/// each kind, chosen by Target::kind. A folder has one registry for each of its interfaces. It
/// lists the kinds of its own, and lets programs add others before any thread asks. Implementations
/// have no state and live as long as the program.
template <typename Interface>
class PerKind {
 public:
  using Entry = std::pair<std::string_view, const Interface*>;
  PerKind(std::initializer_list<Entry> entries) : entries_(entries) {}

  void Add(std::string_view kind, const Interface* implementation) {
    entries_.emplace_back(kind, implementation);
  }
  /// Null where this registry does not know the kind.
  const Interface* Find(std::string_view kind) const {
    for (const auto& [name, implementation] : entries_) {
      if (name == kind) return implementation;
    }
    return nullptr;
  }
  /// The kind must be known here.
  const Interface& Of(const Target& target) const {
    const Interface* const found = Find(target.kind);
    HONE_CHECK(found != nullptr) << "nothing here is made for targets like '" << target.text << "'";
    return *found;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace hone::ir
