#include "tests/web/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>

#include "base/core/unique_fd.h"

namespace hone::web_test {

std::string Exchange(int port, const std::string& bytes) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
  (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(n));
  }
  return answer;
}

HttpAnswer Ask(int port, const std::string& path, const std::string& method,
               const std::string& host) {
  std::string request = method + " " + path + " HTTP/1.1\r\nConnection: close\r\n";
  if (!host.empty()) request += "Host: " + host + "\r\n";
  const std::string text = Exchange(port, request + "\r\n");
  HttpAnswer answer;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  std::istringstream head(text.substr(0, end));
  std::string version, line;
  head >> version >> answer.status;
  std::getline(head, line);
  while (std::getline(head, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) answer.headers[line.substr(0, colon)] = line.substr(colon + 2);
  }
  answer.body = text.substr(end + 4);
  return answer;
}

}  // namespace hone::web_test
