#include "runtime/externs.h"

namespace hone::runtime {
namespace {

constexpr ExternRoutine kRoutines[] = {
    {"TopK", CheckTopK, RunTopK},
    {"ScatterElements", CheckScatterElements, RunScatterElements},
    {"ScatterND", CheckScatterNd, RunScatterNd},
};

}  // namespace

const ExternRoutine* FindExtern(std::string_view name) {
  for (const ExternRoutine& routine : kRoutines) {
    if (routine.name == name) return &routine;
  }
  return nullptr;
}

std::string ExternNames() {
  std::string names;
  for (const ExternRoutine& routine : kRoutines) {
    if (!names.empty()) names += ", ";
    names += routine.name;
  }
  return names;
}

}  // namespace hone::runtime
