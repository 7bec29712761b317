#include "client/emit.h"

#include <unistd.h>

#include <filesystem>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "client/c_name.h"
#include "client/exit_code.h"
#include "client/output_path.h"
#include "client/package_header.h"
#include "client/package_object.h"

namespace hone::client {
namespace {

namespace fs = std::filesystem;

std::string Beside(const std::string& package_path, const char* ending) {
  return fs::path(package_path).replace_extension(ending).string();
}

/// The runtime as an archive for shared libraries, in libexec/hone beside the programs.
absl::StatusOr<std::string> FindRuntimeArchive() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "read '/proc/self/exe' (is /proc mounted?)");
  const fs::path path =
      self.parent_path().parent_path() / "libexec" / "hone" / "libhone_embedded.a";
  if (fs::exists(path, error)) return path.string();
  return absl::NotFoundError(fmt::format(
      "'{}' is missing, which --emit so links into the library; build or install all of Hone again",
      path.string()));
}

absl::Status LinkModelLibrary(const std::string& object, const std::string& name,
                              const fs::path& output, measure::BuilderClient& builder) {
  HONE_ASSIGN_OR_RETURN(const std::string archive, FindRuntimeArchive());
  const fs::path temporary = output.string() + fmt::format(".{}.tmp", ::getpid());
  const absl::Status linked =
      builder.LinkLibrary({.objects = {fs::absolute(object).string()},
                           .archives = {archive},
                           .exported = {"hone_*", name + "_package", name + "_package_bytes"},
                           .soname = output.filename().string(),
                           .output = fs::absolute(temporary).string()});
  std::error_code error;
  if (linked.ok()) {
    fs::rename(temporary, output, error);
    if (!error) return absl::OkStatus();
  }
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (error) return ErrnoStatus(error.value(), fmt::format("write '{}'", output.string()));
  return Annotate(linked, fmt::format("'{}'", output.string()));
}

}  // namespace

absl::StatusOr<EmitOptions> ReadEmit(const Arguments& arguments) {
  EmitOptions emit;
  std::string rest = arguments.TextOr("emit", "");
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string word = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    if (word == "so") {
      emit.shared_library = emit.object = true;
    } else if (word == "object") {
      emit.object = true;
    } else if (word == "header") {
      emit.header = true;
    } else {
      return WithExitCode(
          absl::InvalidArgumentError(fmt::format("--emit takes a list of so, object and header, as "
                                                 "in so,header; \"{}\" is none of them",
                                                 word)),
          ExitCode::kUsage);
    }
  }
  return emit;
}

absl::Status CheckEmit(const EmitOptions& emit, const std::string& package_path,
                       const std::vector<std::string>& inputs) {
  for (const auto& [wanted, ending] :
       {std::pair(emit.object, ".o"), std::pair(emit.shared_library, ".so"),
        std::pair(emit.header, ".h")}) {
    if (!wanted) continue;
    const std::string path = Beside(package_path, ending);
    if (path == package_path) {
      return WithExitCode(
          absl::InvalidArgumentError(fmt::format("--emit would write '{}' over the package of the "
                                                 "same name; call it '{}' with --output",
                                                 path, Beside(package_path, ".hone"))),
          ExitCode::kUsage);
    }
    HONE_RETURN_IF_ERROR(CheckOutput(path, inputs));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> EmitFiles(const EmitOptions& emit,
                                                   const std::string& package_path,
                                                   const std::string& target, const ir::Plan& plan,
                                                   measure::BuilderClient& builder) {
  const std::string name = CModelName(fs::path(package_path).stem().string());
  std::vector<std::string> written;
  if (emit.object) {
    written.push_back(Beside(package_path, ".o"));
    HONE_RETURN_IF_ERROR(WritePackageObject(package_path, name, written.back()));
  }
  if (emit.shared_library) {
    HONE_RETURN_IF_ERROR(
        LinkModelLibrary(written.back(), name, Beside(package_path, ".so"), builder));
    written.push_back(Beside(package_path, ".so"));
  }
  if (emit.header) {
    written.push_back(Beside(package_path, ".h"));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(written.back(), PackageHeader({name, target, &plan})));
  }
  return written;
}

}  // namespace hone::client
