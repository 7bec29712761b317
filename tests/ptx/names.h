#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/ptx/program.h"

// The words of PTX that the executor knows.
namespace hone::ptx {

std::optional<Type> TypeNamed(std::string_view word);
std::optional<Space> SpaceNamed(std::string_view word);
/// %tid.x and the like.
bool IsSpecial(std::string_view name);

/// Takes an instruction's name apart. Empty, or the part that is not known.
std::string ReadName(std::string_view name, Instruction* in);

/// Whether the operands are those of the opcode. Empty, or what is wrong.
std::string CheckForm(const Instruction& in);

}  // namespace hone::ptx
