#include "client/version_text.h"

#include <utility>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/versions.h"
#include "client/json_text.h"
#include "ir/target.h"

namespace hone::client {
namespace {

std::vector<std::pair<std::string, int>> Numbers() {
  return {{"package format", kPackageFormatVersion},
          {"runtime", kRuntimeVersion},
          {"log schema", kSchemaVersion},
          {"trace text", kTraceTextVersion},
          {"builder", kBuilderVersion},
          {"measurement policy", kCpuVersions.measurement_policy},
          {"device class", kCpuVersions.device_class},
          {"feature schema", kCpuVersions.feature_schema},
          {"analytic model", kCpuVersions.analytic_model},
          {"oracle", kOracleVersion},
          {"protocol", kProtocolVersion}};
}

// Versions of the packages that this was built with: `hone` itself links neither (hone-builder
// does).
constexpr char kLlvmVersion[] = HONE_LLVM_VERSION;
constexpr char kXgboostVersion[] = HONE_XGBOOST_VERSION;

/// Those that `--target` takes, by kind.
std::string Targets() {
  std::string all;
  for (const ir::TargetKind* kind : ir::TargetKinds()) {
    all += (all.empty() ? "" : " ") + std::string(kind->accepted());
  }
  return all;
}

}  // namespace

std::string VersionText() {
  std::string text = fmt::format("hone {}\n", kProgramVersion);
  for (const auto& [name, number] : Numbers()) text += fmt::format("{:<20}{}\n", name, number);
  text += fmt::format("{:<20}{}\n", "LLVM", kLlvmVersion);
  text += fmt::format("{:<20}{}\n", "XGBoost", kXgboostVersion);
  return text + fmt::format("{:<20}{}\n", "targets", Targets());
}

std::string VersionJson() {
  nlohmann::ordered_json object = {{"hone", kProgramVersion}};
  for (auto [name, number] : Numbers()) {
    for (char& c : name) c = c == ' ' ? '_' : c;
    object[name] = number;
  }
  object["llvm"] = kLlvmVersion;
  object["xgboost"] = kXgboostVersion;
  for (const ir::TargetKind* kind : ir::TargetKinds()) {
    object["targets"].push_back(kind->accepted());
  }
  return JsonText(object);
}

}  // namespace hone::client
