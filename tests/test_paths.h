#pragma once

#include <string>

namespace hone::testing {

/// Root of the source tree, absolute (goldens are read from here).
std::string SourceDir();

/// Root of the build tree, absolute: programs are in bin/ and libexec/hone/ below it.
std::string BuildDir();

/// Folder of the filled test models (NAME.onnx, NAME.inputs.npz, NAME.expected.npz). It may not
/// exist: a test that needs it must skip with that reason.
std::string ModelsDir();

}  // namespace hone::testing
