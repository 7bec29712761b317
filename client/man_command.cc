#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/help_text.h"
#include "client/json_text.h"

namespace hone::client {

absl::Status RunMan(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  if (arguments.Given("output")) {
    const std::string folder = arguments.Text("output");
    HONE_RETURN_IF_ERROR(MakeDirectories(folder));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(folder + "/hone.1", ManPage(nullptr)));
    for (const CommandSpec& command : Commands()) {
      const std::string path = fmt::format("{}/hone-{}.1", folder, command.name);
      HONE_RETURN_IF_ERROR(WriteFileAtomically(path, ManPage(&command)));
    }
    context.json_result = JsonText(nlohmann::json({{"folder", folder}}));
    return absl::OkStatus();
  }
  const CommandSpec* command = nullptr;
  if (arguments.Given("COMMAND")) {
    command = FindCommand(arguments.Text("COMMAND"));
    if (command == nullptr) {
      return WithExitCode(
          absl::InvalidArgumentError(fmt::format(
              "there is no command \"{}\"; `hone --help` lists them", arguments.Text("COMMAND"))),
          ExitCode::kUsage);
    }
  }
  const std::string page = ManPage(command);
  if (context.json()) {
    context.json_result = JsonText(nlohmann::json({{"page", page}}));
  } else {
    context.out << page;
  }
  return absl::OkStatus();
}

}  // namespace hone::client
