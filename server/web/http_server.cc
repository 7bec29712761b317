#include "server/web/http_server.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "fmt/format.h"

#include "base/credentials.h"

namespace hone::server::web {
namespace {

constexpr unsigned kConnections = 64;
constexpr unsigned kSilenceSeconds = 15;
constexpr unsigned kMemoryBytes = 32 * 1024;  ///< of one connection: its request line and headers

constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

struct Address {
  sockaddr_storage storage{};
  bool v6 = false;
};

absl::StatusOr<Address> ParseAddress(const HttpOptions& options) {
  const std::string& listen = options.listen;
  if (options.loopback_only && !IsLoopbackAddress(listen)) {
    return absl::InvalidArgumentError(
        fmt::format("the page is served on loopback alone, '{}' is not: it shows everything to "
                    "whoever can connect. From elsewhere: ssh -L 7422:localhost:7422 HOST",
                    listen));
  }
  const size_t colon = listen.rfind(':');
  std::string host = colon == std::string::npos ? "" : listen.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : listen.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | (host == "localhost" ? 0 : AI_NUMERICHOST);
  addrinfo* found = nullptr;
  const bool in_range = !port.empty() && port.size() <= 5 &&
                        port.find_first_not_of("0123456789") == std::string::npos &&
                        std::stoi(port) <= 65535;
  if (host.empty() || !in_range || ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no address to listen on: give ADDRESS:PORT, as 127.0.0.1:7422 or "
                    "[::1]:7422",
                    listen));
  }
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.v6 = found->ai_family == AF_INET6;
  ::freeaddrinfo(found);
  return address;
}

class MicroHttpServer final : public HttpServer {
 public:
  MicroHttpServer(Handler handler, bool loopback_only)
      : handler_(std::move(handler)), loopback_only_(loopback_only) {}
  ~MicroHttpServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }
  int port() const override { return port_; }

  absl::Status Listen(const std::string& listen);

 private:
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                              const char* method, const char* version, const char* upload_data,
                              size_t* upload_size, void** seen);
  HttpResponse Answer(MHD_Connection* connection, const std::string& url,
                      const std::string& method) const;
  static MHD_Result Send(MHD_Connection* connection, const HttpResponse& answer);

  const Handler handler_;
  const bool loopback_only_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

absl::Status MicroHttpServer::Listen(const std::string& listen) {
  absl::StatusOr<Address> address =
      ParseAddress({.listen = listen, .loopback_only = loopback_only_});
  if (!address.ok()) return address.status();
  const unsigned flags =
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | (address->v6 ? unsigned{MHD_USE_IPv6} : 0U);
  daemon_ = MHD_start_daemon(
      flags, 0, nullptr, nullptr, &OnRequest, this, MHD_OPTION_SOCK_ADDR, &address->storage,
      MHD_OPTION_CONNECTION_LIMIT, kConnections, MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<size_t>(kMemoryBytes), MHD_OPTION_END);
  const MHD_DaemonInfo* info =
      daemon_ == nullptr ? nullptr : MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_LISTEN_FD);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (info == nullptr ||
      ::getsockname(info->listen_fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return absl::UnavailableError(fmt::format(
        "cannot listen on '{}': another program does, or the address is not this machine's",
        listen));
  }
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return absl::OkStatus();
}

MHD_Result AddQuery(void* query, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

HttpResponse MicroHttpServer::Answer(MHD_Connection* connection, const std::string& url,
                                     const std::string& method) const {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET and HEAD alone\n"};
  }
  const char* host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
  if (loopback_only_ && (host == nullptr || !IsLoopbackHost(host))) {
    return {.status = MHD_HTTP_MISDIRECTED_REQUEST,
            .body = "this page answers to localhost, 127.0.0.1 and [::1] alone\n"};
  }
  HttpRequest request{.path = url, .query = {}};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &AddQuery, &request.query);
  return handler_(request);
}

MHD_Result MicroHttpServer::Send(MHD_Connection* connection, const HttpResponse& answer) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, "Allow", "GET, HEAD");
    MHD_add_response_header(response, "Connection", "close");
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

MHD_Result MicroHttpServer::OnRequest(void* self, MHD_Connection* connection, const char* url,
                                      const char* method, const char* /*version*/,
                                      const char* /*upload_data*/, size_t* upload_size,
                                      void** seen) {
  static char mark = 0;
  const auto* server = static_cast<const MicroHttpServer*>(self);
  const bool reads = std::strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
                     std::strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
  // The library calls once with the headers and once more after the body; what brings a body that
  // nobody reads is answered at once and cut.
  if (*seen == nullptr && reads) {
    *seen = &mark;
    return MHD_YES;
  }
  *upload_size = 0;
  return Send(connection, server->Answer(connection, url, method));
}

}  // namespace

bool IsLoopbackHost(const std::string& host) {
  std::string name = host;
  const size_t colon = name.rfind(':');
  const bool port = colon != std::string::npos && colon + 1 < name.size() &&
                    name.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                    (name.front() != '[' || name[colon - 1] == ']');
  if (port) name.resize(colon);
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

absl::Status CheckAddress(const HttpOptions& options) { return ParseAddress(options).status(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              Handler handler) {
  auto server = std::make_unique<MicroHttpServer>(std::move(handler), options.loopback_only);
  if (absl::Status listening = server->Listen(options.listen); !listening.ok()) return listening;
  return server;
}

}  // namespace hone::server::web
