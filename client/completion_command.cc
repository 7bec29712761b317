#include "nlohmann/json.hpp"

#include "client/command.h"
#include "client/completion.h"
#include "client/json_text.h"

namespace hone::client {

absl::Status RunCompletion(CommandContext& context) {
  const std::string shell = context.arguments.Text("SHELL");
  const std::string script = shell == "zsh"    ? ZshCompletion()
                             : shell == "fish" ? FishCompletion()
                                               : BashCompletion();
  if (context.json()) {
    context.json_result = JsonText(nlohmann::json({{"shell", shell}, {"script", script}}));
  } else {
    context.out << script;
  }
  return absl::OkStatus();
}

}  // namespace hone::client
