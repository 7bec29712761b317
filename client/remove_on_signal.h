#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::client {

/// While it lives SIGINT, SIGTERM and SIGHUP remove what Set named and end the program with exit
/// code 7; one that was ignored (nohup) stays so. For commands whose unfinished work is of no use
/// to anybody. One at a time.
class RemoveOnSignal {
 public:
  /// `command`: for the message. `json`: an error object on standard output as well.
  RemoveOnSignal(std::string_view command, bool json);
  ~RemoveOnSignal();
  RemoveOnSignal(const RemoveOnSignal&) = delete;
  RemoveOnSignal& operator=(const RemoveOnSignal&) = delete;

  /// Files, and the folder that has nothing else in it; each may be absent. To be named before it
  /// is made. Once.
  void Set(const std::vector<std::string>& files, const std::string& folder = "");
};

}  // namespace hone::client
