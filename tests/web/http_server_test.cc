#include "server/web/http_server.h"

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/web/http_client.h"

namespace hone::server::web {
namespace {

using ::testing::HasSubstr;
using web_test::Ask;
using web_test::Exchange;
using web_test::HttpAnswer;

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(bool loopback_only) {
    auto server = HttpServer::Start({.listen = "127.0.0.1:0", .loopback_only = loopback_only},
                                    [this](const HttpRequest& request) {
                                      ++handled_;
                                      std::string body = request.path;
                                      for (const auto& [k, v] : request.query) {
                                        body += "|" + k + "=" + v;
                                      }
                                      return HttpResponse{.body = body};
                                    });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }

  std::atomic<int> handled_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersWithHeadersThatForbidEverythingFromElsewhere) {
  Start(true);
  const HttpAnswer answer = Ask(port(), "/a%20b?x=1%262&empty");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "/a b|empty=|x=1&2");
  const std::string policy = answer.headers.at("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("http"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("*"), std::string::npos) << policy;
  EXPECT_EQ(answer.headers.at("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(answer.headers.at("Cache-Control"), "no-store");
  EXPECT_EQ(answer.headers.count("Access-Control-Allow-Origin"), 0u);
}

TEST_F(HttpServerTest, HeadHasNoBodyAndOtherMethodsAreRefusedUnread) {
  Start(true);
  EXPECT_EQ(Ask(port(), "/x", "HEAD").status, 200);
  EXPECT_EQ(Ask(port(), "/x", "HEAD").body, "");
  const int before = handled_;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"}) {
    const HttpAnswer answer = Ask(port(), "/x", method);
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.headers.at("Allow"), "GET, HEAD") << method;
  }
  EXPECT_THAT(
      Exchange(port(), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nab"),
      HasSubstr("405"));
  EXPECT_EQ(handled_, before);
}

TEST_F(HttpServerTest, AnswersToLoopbackNamesAlone) {
  Start(true);
  for (const char* host : {"localhost", "127.0.0.1", "[::1]", "localhost:8080", "[::1]:1"}) {
    EXPECT_EQ(Ask(port(), "/", "GET", host).status, 200) << host;
  }
  const int before = handled_;
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "evil:localhost",
        "127.0.0.2", "::1", "localhost:", "localhost:80:80", "localhost@evil", "10.0.0.1"}) {
    EXPECT_EQ(Ask(port(), "/", "GET", host).status, 421) << host;
  }
  EXPECT_THAT(Exchange(port(), "GET / HTTP/1.0\r\n\r\n").substr(0, 12), HasSubstr(" 421"));
  EXPECT_EQ(handled_, before);
}

TEST_F(HttpServerTest, MetricsMayBeAskedUnderAnyName) {
  Start(false);
  EXPECT_EQ(Ask(port(), "/", "GET", "tuner.example:9464").status, 200);
}

TEST_F(HttpServerTest, NonsenseIsRefusedAndTheNextRequestAnswered) {
  Start(true);
  EXPECT_EQ(Exchange(port(), "\x16\x03\x01nonsense\r\n\r\n").find("200"), std::string::npos);
  const std::string huge(100'000, 'a');
  EXPECT_EQ(Exchange(port(), "GET /" + huge + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .find("HTTP/1.1 200"),
            std::string::npos);
  EXPECT_EQ(Ask(port(), "/still").body, "/still");
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const auto start = [](const std::string& listen, bool loopback_only) {
    return HttpServer::Start({.listen = listen, .loopback_only = loopback_only},
                             [](const HttpRequest&) { return HttpResponse(); })
        .status();
  };
  EXPECT_EQ(start("0.0.0.0:0", true).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start("127.evil.example:0", true).code(), absl::StatusCode::kInvalidArgument);
  for (const char* listen : {"", ":80", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999999", "x"}) {
    EXPECT_EQ(start(listen, false).code(), absl::StatusCode::kInvalidArgument) << listen;
  }
  const auto first = HttpServer::Start({.listen = "127.0.0.1:0"},
                                       [](const HttpRequest&) { return HttpResponse(); });
  ASSERT_TRUE(first.ok());
  const absl::Status taken = start("127.0.0.1:" + std::to_string((*first)->port()), false);
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr(std::to_string((*first)->port())));
}

}  // namespace
}  // namespace hone::server::web
