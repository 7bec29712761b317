#include "client/dependency_file.h"

#include <algorithm>
#include <filesystem>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/output_path.h"

namespace hone::client {
namespace {

/// A path as a word of a Makefile.
std::string Escaped(const std::string& path) {
  std::string word;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') word += '\\';
    if (c == '$') word += '$';
    word += c;
  }
  return word;
}

/// The folder counts too: its time moves when a Trace is added or taken away.
void AddTraces(const std::string& folder, std::vector<std::string>& files) {
  files.push_back(folder);
  std::vector<std::string> traces;
  std::error_code error;
  for (auto at = std::filesystem::directory_iterator(folder, error);
       at != std::filesystem::directory_iterator() && !error; at.increment(error)) {
    if (at->path().extension() == ".trace") traces.push_back(at->path().string());
  }
  std::sort(traces.begin(), traces.end());
  files.insert(files.end(), traces.begin(), traces.end());
}

}  // namespace

std::string DependencyText(const std::string& target, const std::vector<std::string>& files) {
  std::string text = Escaped(target) + ":";
  for (const std::string& file : files) text += " \\\n  " + Escaped(file);
  return text + "\n";
}

absl::Status CheckDependencyFile(const Arguments& arguments, const std::string& target,
                                 const std::vector<std::string>& inputs) {
  if (!arguments.Given("depfile")) return absl::OkStatus();
  const std::string path = arguments.Text("depfile");
  if (path == target) {
    return WithExitCode(absl::InvalidArgumentError(fmt::format(
                            "--depfile '{}' is where the package goes; name another file", path)),
                        ExitCode::kUsage);
  }
  return CheckOutput(path, inputs);
}

absl::Status WriteDependencyFile(const Arguments& arguments, const std::string& target,
                                 const TraceChoice& traces,
                                 const std::vector<std::string>& data_files) {
  std::vector<std::string> files = {arguments.Text("MODEL")};
  files.insert(files.end(), data_files.begin(), data_files.end());
  for (const std::string& bind : arguments.List("bind")) {
    files.push_back(bind.substr(bind.rfind('=') + 1));
  }
  if (traces.kind == TraceChoice::Kind::kLog) files.push_back(traces.path);
  if (traces.kind == TraceChoice::Kind::kSnapshot) {
    files.push_back(traces.path.substr(0, traces.path.rfind("@sha256:")));
  }
  if (traces.kind == TraceChoice::Kind::kFolder) AddTraces(traces.path, files);
  return WriteFileAtomically(arguments.Text("depfile"), DependencyText(target, files));
}

}  // namespace hone::client
