#pragma once

#include <string>

namespace hone::client {

/// The C identifier nearest to a name: "1-res net" to "m1_res_net".
std::string CIdentifier(const std::string& name);

/// What a model is called in C and C++, where its name is a type and begins those of functions:
/// "int", "main" and "hone_model" mean something else there already and become "m_int" and so on.
std::string CModelName(const std::string& name);

/// What an input or output is called as a member of a structure: "int" becomes "int_".
std::string CFieldName(const std::string& name);

}  // namespace hone::client
