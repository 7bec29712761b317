#include "codegen/cuda/assemble.h"

#include <string_view>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "base/file.h"
#include "base/subprocess.h"
#include "codegen/link_folder.h"

#if HONE_HAS_NVPTXCOMPILER
#include "nvPTXCompiler.h"
#endif

namespace hone::codegen {
namespace {

/// An error's text shows so much of the log: its beginning names the first mistake.
constexpr size_t kMostLog = 2000;

absl::Status Refused(std::string_view chip, std::string_view log) {
  return absl::InvalidArgumentError(
      fmt::format("the assembler refuses the PTX for {}: {}", chip, log.substr(0, kMostLog)));
}

#if HONE_HAS_NVPTXCOMPILER

class Library : public Assembler {
 public:
  std::string version() const override {
    unsigned major = 0;
    unsigned minor = 0;
    nvPTXCompilerGetVersion(&major, &minor);
    return fmt::format("nvptxcompiler {}.{}", major, minor);
  }

  absl::StatusOr<Assembled> Assemble(const std::string& ptx,
                                     const std::string& chip) const override {
    nvPTXCompilerHandle handle = nullptr;
    if (nvPTXCompilerCreate(&handle, ptx.size(), ptx.c_str()) != NVPTXCOMPILE_SUCCESS)
      return absl::InternalError("nvPTXCompiler takes no text");
    const std::unique_ptr<nvPTXCompiler, void (*)(nvPTXCompilerHandle)> owner(
        handle, [](nvPTXCompilerHandle h) { nvPTXCompilerDestroy(&h); });
    const std::string name = "--gpu-name=" + chip;
    const char* const options[] = {name.c_str(), "--verbose"};
    const nvPTXCompileResult result = nvPTXCompilerCompile(handle, 2, options);
    if (result != NVPTXCOMPILE_SUCCESS) {
      const std::string log =
          Text(handle, &nvPTXCompilerGetErrorLogSize, &nvPTXCompilerGetErrorLog);
      return Refused(chip, log.empty() ? fmt::format("error {}", static_cast<int>(result)) : log);
    }
    Assembled out;
    size_t size = 0;
    nvPTXCompilerGetCompiledProgramSize(handle, &size);
    out.cubin.resize(size);
    if (nvPTXCompilerGetCompiledProgram(handle, out.cubin.data()) != NVPTXCOMPILE_SUCCESS)
      return absl::InternalError("nvPTXCompiler gives no code");
    out.log =
        ParseAssemblerLog(Text(handle, &nvPTXCompilerGetInfoLogSize, &nvPTXCompilerGetInfoLog));
    return out;
  }

 private:
  static std::string Text(nvPTXCompilerHandle handle,
                          nvPTXCompileResult (*size_of)(nvPTXCompilerHandle, size_t*),
                          nvPTXCompileResult (*copy)(nvPTXCompilerHandle, char*)) {
    size_t size = 0;
    if (size_of(handle, &size) != NVPTXCOMPILE_SUCCESS || size == 0) return {};
    std::string text(size + 1, '\0');
    if (copy(handle, text.data()) != NVPTXCOMPILE_SUCCESS) return {};
    text.resize(text.find('\0'));
    return text;
  }
};

#endif

class Ptxas : public Assembler {
 public:
  Ptxas(std::string path, std::string version, const MonotonicClock& clock)
      : path_(std::move(path)), version_(std::move(version)), clock_(clock) {}

  std::string version() const override { return version_; }

  absl::StatusOr<Assembled> Assemble(const std::string& ptx,
                                     const std::string& chip) const override {
    constexpr int64_t kTimeoutNs = 120'000'000'000;
    absl::Status error;
    for (const std::string& base : LinkBases()) {
      const LinkFolder folder(base);
      error = folder.status();
      if (!error.ok()) continue;
      SubprocessOptions options;
      options.argv = {path_,           "--gpu-name=" + chip, "--verbose",
                      "--output-file", folder.File(),        "-"};
      options.working_directory = "/";
      HONE_ASSIGN_OR_RETURN(
          const RunResult run,
          RunSubprocess(options, {.input = ptx, .timeout_ns = kTimeoutNs}, clock_));
      if (run.timed_out) return absl::DeadlineExceededError(path_ + " ran for two minutes");
      if (!run.exit_state.code)
        return absl::InternalError(path_ + " ended by " + run.exit_state.ToString());
      // Whatever it says goes to one of the two streams, which one differs between versions.
      const std::string log = run.standard_output + run.standard_error;
      if (!run.exit_state.success()) return Refused(chip, log);
      Assembled out;
      HONE_ASSIGN_OR_RETURN(out.cubin, ReadFile(folder.File()));
      out.log = ParseAssemblerLog(log);
      return out;
    }
    return error;
  }

 private:
  const std::string path_;
  const std::string version_;
  const MonotonicClock& clock_;
};

/// "13.0.88" of "Cuda compilation tools, release 13.0, V13.0.88".
std::string VersionIn(std::string_view text) {
  const size_t at = text.find(", V");
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + 3);
  return std::string(text.substr(0, text.find_first_not_of("0123456789.")));
}

}  // namespace

std::unique_ptr<Assembler> BuiltInAssembler() {
#if HONE_HAS_NVPTXCOMPILER
  return std::make_unique<Library>();
#else
  return nullptr;
#endif
}

absl::StatusOr<std::unique_ptr<Assembler>> PtxasAssembler(const std::string& path,
                                                          const MonotonicClock& clock) {
  constexpr int64_t kTimeoutNs = 10'000'000'000;
  SubprocessOptions options;
  options.argv = {path, "--version"};
  HONE_ASSIGN_OR_RETURN(const RunResult run,
                        RunSubprocess(options, {.input = {}, .timeout_ns = kTimeoutNs}, clock));
  const std::string version = VersionIn(run.standard_output);
  if (!run.exit_state.success() || version.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not NVIDIA's assembler: with --version it says no version", path));
  }
  return std::make_unique<Ptxas>(path, "ptxas " + version, clock);
}

}  // namespace hone::codegen
