#include "client/c_name.h"

#include <cctype>
#include <string_view>

namespace hone::client {
namespace {

/// Keywords of C and C++ up to C23 and C++20, operators that are words, and what compilers define.
constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
    "else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq i386 linux unix ";

bool IsKeyword(const std::string& name) {
  return kKeywords.find(" " + name + " ") != std::string_view::npos;
}

/// Names of <stddef.h>, <stdint.h> and Hone's own header, which every header of a model includes.
bool IsOfIncludedHeader(std::string_view name) {
  return name == "NULL" || name == "offsetof" || name.ends_with("_t") || name.ends_with("_MAX") ||
         name.ends_with("_MIN") || name.ends_with("_WIDTH") || name.starts_with("HONE_");
}

}  // namespace

std::string CIdentifier(const std::string& name) {
  std::string identifier;
  for (const char c : name) {
    identifier += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  const bool starts =
      !identifier.empty() && std::isalpha(static_cast<unsigned char>(identifier[0])) != 0;
  return starts ? identifier : "m" + identifier;
}

std::string CModelName(const std::string& name) {
  const std::string identifier = CIdentifier(name);
  const bool taken = IsKeyword(identifier) || IsOfIncludedHeader(identifier) ||
                     identifier == "main" || identifier == "hone" ||
                     identifier.starts_with("hone_");
  return taken ? "m_" + identifier : identifier;
}

std::string CFieldName(const std::string& name) {
  const std::string identifier = CIdentifier(name);
  return IsKeyword(identifier) || IsOfIncludedHeader(identifier) ? identifier + "_" : identifier;
}

}  // namespace hone::client
