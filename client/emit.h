#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "ir/plan.h"
#include "measure/builder_client.h"

namespace hone::client {

/// What `hone compile --emit` asks for beside the package.
struct EmitOptions {
  bool shared_library = false;  ///< NAME.so with the runtime inside; NAME.o comes with it
  bool object = false;
  bool header = false;
};

/// Reads "so,header,object"; a usage error names what is known.
absl::StatusOr<EmitOptions> ReadEmit(const Arguments& arguments);

/// Whether what EmitFiles writes has places of its own: asked before work that would be lost. A
/// usage error where one is the package's own; errors of CheckOutput.
absl::Status CheckEmit(const EmitOptions& emit, const std::string& package_path,
                       const std::vector<std::string>& inputs);

/// Writes NAME.o, NAME.so and NAME.h beside the package DIR/NAME.hone, each whole or not at all.
/// Gives their paths. Errors of files; NotFound where libhone_embedded.a is not installed.
absl::StatusOr<std::vector<std::string>> EmitFiles(const EmitOptions& emit,
                                                   const std::string& package_path,
                                                   const std::string& target, const ir::Plan& plan,
                                                   measure::BuilderClient& builder);

}  // namespace hone::client
