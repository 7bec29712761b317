#pragma once

namespace hone::client {

/// The text of include/hone/hone.h, for headers that `hone compile --emit header` writes. Ends
/// with 0, lives as long as the program.
extern const char kHoneHeaderText[];

}  // namespace hone::client
