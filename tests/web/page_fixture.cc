// Serves the page over a farm of known, hostile data until its standard input ends; prints the
// port.
#include <unistd.h>

#include <cstdio>

#include "server/web/http_server.h"
#include "server/web/page_routes.h"
#include "tests/web/known_farm.h"

int main() {
  hone::web_test::KnownFarm farm;
  hone::server::web::PageRoutes routes(farm);
  const auto server = hone::server::web::HttpServer::Start(
      {.listen = "127.0.0.1:0", .loopback_only = true},
      [&](const hone::server::web::HttpRequest& request) { return routes.Serve(request); });
  if (!server.ok()) return 1;
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  return 0;
}
