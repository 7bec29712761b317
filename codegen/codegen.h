#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/link_folder.h"
#include "ir/stmt.h"
#include "ir/target.h"

// Loop nests → machine code. The only library that links LLVM and LLD; neither shows here.
// Thread-safe; each thread keeps its own code generators. LLVM may end the process on a bug of its
// own: call from a process that may die.
namespace hone::codegen {

/// An ELF relocatable object with, for every phase of every nest, `int32_t <phase.symbol>(const
/// HoneCall*)` (ABI: ir/artifact.h). Code is for the target, whatever the host; the same input
/// gives the same bytes. It calls nothing outside itself. An empty part (begin >= end) returns 0 at
/// once. kInvalidArgument names phase and buffer: a register index that is not constant after
/// unrolling, a store to a read-only buffer, a loop or scope of a GPU, two phases with one symbol.
/// kResourceExhausted: so much is unrolled that compiling would take seconds.
absl::StatusOr<std::string> CompileToObject(const std::vector<const ir::LoopNest*>& nests,
                                            const ir::Target& target);

/// The assembly text of the same code, for tests and `hone explain`: Intel syntax. For a GPU it is
/// the code: PTX, of which codegen/cuda/llvm_nvptx.h says what its kernels take.
absl::StatusOr<std::string> Assembly(const std::vector<const ir::LoopNest*>& nests,
                                     const ir::Target& target);

/// The LLVM IR before any pass: for goldens.
absl::StatusOr<std::string> LlvmIr(const std::vector<const ir::LoopNest*>& nests,
                                   const ir::Target& target);

/// Links objects of CompileToObject into one ELF shared object, ready for dlopen (from a memfd,
/// say). Every phase symbol is exported. An undefined or doubly defined symbol is kInvalidArgument
/// with the linker's words. The linker writes into a folder in the first of `bases` that has room;
/// where none has, kResourceExhausted names one: that says nothing about the objects.
absl::StatusOr<std::string> LinkShared(const std::vector<std::string>& objects,
                                       const std::vector<std::string>& bases = LinkBases());

/// Files for LinkLibrary.
struct LibraryLink {
  std::vector<std::string> objects;
  std::vector<std::string> archives;  ///< every member is taken, what nobody needs goes again
  std::vector<std::string> exported;  ///< names or patterns; nothing else is visible
  std::string soname;
  std::string output;
};

/// Links files into a shared library of its own: with the C and C++ libraries that this program
/// itself runs on, so no compiler need be installed. Errors as of LinkShared.
absl::Status LinkLibrary(const LibraryLink& link);

}  // namespace hone::codegen
