#include "client/command.h"
#include "client/version_text.h"

namespace hone::client {

absl::Status RunVersion(CommandContext& context) {
  if (context.json()) {
    context.json_result = VersionJson();
  } else {
    context.out << VersionText();
  }
  return absl::OkStatus();
}

}  // namespace hone::client
