#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hone::server::web {

struct HttpRequest {
  std::string path;                          ///< decoded, from "/"
  std::map<std::string, std::string> query;  ///< decoded; the last of equal names
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpOptions {
  std::string listen;  ///< "127.0.0.1:7422", "[::1]:0"; port 0: any free one
  /// Refuses to listen elsewhere than on a loopback address, and requests whose Host is not one:
  /// a page of another site cannot reach this one under a name that it lets point here.
  bool loopback_only = false;
};

/// kInvalidArgument: no address to listen on, or not loopback.
absl::Status CheckAddress(const HttpOptions& options);

/// A small HTTP/1.1 server: GET and HEAD alone, no bodies taken, one thread, few connections, each
/// cut after some seconds of silence. Every answer forbids scripts, styles and frames from
/// elsewhere, and being kept.
class HttpServer {
 public:
  /// Called on the server's thread, one request at a time.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// kInvalidArgument: no such address, or not loopback; kUnavailable: it is taken.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           Handler handler);
  /// Ends the thread; waits for the request under way.
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
};

/// Whether a Host header names this machine's loopback: "localhost", "127.0.0.1" or "[::1]", with
/// or without a port (a tunnel may have another).
bool IsLoopbackHost(const std::string& host);

}  // namespace hone::server::web
