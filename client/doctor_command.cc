#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/doctor.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/open_log.h"

namespace hone::client {

absl::Status RunDoctor(CommandContext& context) {
  DoctorPaths paths;
  paths.written_folders = {context.environment.data_folder, context.environment.cache_folder};
  paths.cache_folder = context.environment.cache_folder;
  // Where there is no home folder either, the check of the log says so.
  paths.log = UserLogPath(context.arguments, context.environment).value_or("");
  const std::vector<Finding> findings = CheckMachine(paths, *context.environment.clock);
  auto list = nlohmann::ordered_json::array();
  std::string faults;
  for (const Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"health", std::string(ToString(finding.health))},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
    if (!context.json()) {
      context.out << fmt::format("{:<8} {:<13} {}\n", ToString(finding.health), finding.check,
                                 finding.found);
      if (!finding.remedy.empty())
        context.out << fmt::format("{:23}to do: {}\n", "", finding.remedy);
    }
    if (finding.health == Health::kFault) {
      faults += fmt::format("{}{}", faults.empty() ? "" : ", ", finding.check);
    }
  }
  context.json_result = JsonText(nlohmann::ordered_json({{"checks", std::move(list)}}));
  if (faults.empty()) return absl::OkStatus();
  return WithExitCode(absl::FailedPreconditionError(
                          fmt::format("Hone cannot work here: {}; see the remedies", faults)),
                      ExitCode::kDoctor);
}

}  // namespace hone::client
