#include "client/command.h"
#include "client/completion.h"

namespace hone::client {

absl::Status RunCompletion(CommandContext& context) {
  context.out << (context.arguments.Text("SHELL") == "zsh" ? ZshCompletion() : BashCompletion());
  return absl::OkStatus();
}

}  // namespace hone::client
