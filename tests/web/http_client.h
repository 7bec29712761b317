#pragma once

#include <map>
#include <string>

// A plain HTTP client for tests, over a socket of loopback.
namespace hone::web_test {

struct HttpAnswer {
  int status = 0;  ///< 0: no answer
  std::map<std::string, std::string> headers;
  std::string body;
};

/// Sends these bytes and reads to the end of the connection, at most some seconds.
std::string Exchange(int port, const std::string& bytes);

/// One request with "Connection: close"; `host` empty: no Host header.
HttpAnswer Ask(int port, const std::string& path, const std::string& method = "GET",
               const std::string& host = "localhost");

}  // namespace hone::web_test
