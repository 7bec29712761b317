#include "base/credential_check.h"

#include <openssl/pem.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/certificate.h"
#include "base/file.h"
#include "base/status.h"
#include "server/ca.h"
#include "tests/server/temporary_folder.h"

// Credentials that a handshake would fail with, and what is said of them before it.
namespace hone::server {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'900'000'000;

class CredentialCheckTest : public ::testing::Test {
 protected:
  CredentialCheckTest() {
    EXPECT_TRUE(InitCa(folder_ / "ca", kNow).ok());
    EXPECT_TRUE(InitCa(folder_ / "other-ca", kNow).ok());
  }
  Credentials Issued(CallerRole role, const std::string& name, const std::string& ca = "ca") const {
    EXPECT_TRUE(Issue({.ca_folder = folder_ / ca,
                       .role = role,
                       .name = name,
                       .out_folder = folder_ / name,
                       .now_unix_s = kNow,
                       .seconds = 3600})
                    .ok());
    return ReadCredentials(folder_ / name).value();
  }
  static absl::Status Check(const Credentials& credentials,
                            CredentialUse use = {{CallerRole::kMeasure}, {}}) {
    return CheckCredentials(credentials, "F", use);
  }
  static void ExpectRefused(const Credentials& credentials, const std::string& why) {
    const absl::Status refused = Check(credentials);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(StatusMessage(refused), HasSubstr(why));
    EXPECT_THAT(StatusMessage(refused), HasSubstr("folder that honed issue wrote"));
  }

  const TemporaryFolder folder_;
};

TEST_F(CredentialCheckTest, WhatWasIssuedTogetherServes) {
  Credentials w1 = Issued(CallerRole::kMeasure, "w1");
  EXPECT_EQ(Check(w1), absl::OkStatus());
  // While a farm changes its authority both are believed.
  w1.ca = ReadFile(folder_ / "other-ca/ca.pem").value() + w1.ca;
  EXPECT_EQ(Check(w1), absl::OkStatus());
  w1.certificate += w1.ca;
  EXPECT_EQ(Check(w1), absl::OkStatus()) << "a chain";
}

TEST_F(CredentialCheckTest, FilesThatDoNotBelongTogetherAreNamed) {
  const Credentials w1 = Issued(CallerRole::kMeasure, "w1"),
                    w2 = Issued(CallerRole::kMeasure, "w2");
  const Credentials stranger = Issued(CallerRole::kMeasure, "w3", "other-ca");
  ExpectRefused({w1.ca, w1.certificate, w2.key}, "'F/key.pem' is not the key of 'F/cert.pem'");
  ExpectRefused({stranger.ca, w1.certificate, w1.key},
                "'F/cert.pem' is not of the authority in 'F/ca.pem' (");
  ExpectRefused({w1.certificate, w1.certificate, w1.key}, "is not of the authority in 'F/ca.pem'");
  // The authority's own certificate has its key too, and names nobody.
  ExpectRefused({w1.ca, w1.ca, ReadFile(folder_ / "ca/ca.key").value()},
                "'F/cert.pem' names nobody of a farm");
}

TEST_F(CredentialCheckTest, FilesThatAreNoneAreNamed) {
  const Credentials w1 = Issued(CallerRole::kMeasure, "w1");
  const std::string much(size_t{3} << 20, 'A');
  for (const std::string& garbage :
       {std::string(), std::string("\0\n\xff", 3), much, "-----BEGIN CERTIFICATE-----\n" + much,
        w1.certificate.substr(0, w1.certificate.size() / 2), w1.key.substr(0, w1.key.size() / 2)}) {
    ExpectRefused({w1.ca, garbage, w1.key}, "'F/cert.pem' is no certificate");
    ExpectRefused({garbage, w1.certificate, w1.key}, "'F/ca.pem' is no certificate");
    ExpectRefused({w1.ca, w1.certificate, garbage}, "'F/key.pem' is no private key");
  }
}

TEST_F(CredentialCheckTest, AKeyWithAPassphraseIsNoneAndNobodyIsAskedForIt) {
  Credentials w1 = Issued(CallerRole::kMeasure, "w1");
  const x509::Key key = x509::ParseKey(w1.key).value();
  const x509::Bio bio(BIO_new(BIO_s_mem()));
  std::string secret = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), EVP_aes_128_cbc(), secret.data(),
                                          static_cast<int>(secret.size()), nullptr, nullptr),
            1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  w1.key.assign(text, static_cast<size_t>(size));
  ExpectRefused(w1, "without a passphrase");
}

TEST_F(CredentialCheckTest, ARoleServesItsOwnPrograms) {
  const Credentials alice = Issued(CallerRole::kSubmit, "alice");
  EXPECT_EQ(Check(alice, {{CallerRole::kSubmit, CallerRole::kAdmin}, {}}), absl::OkStatus());
  const absl::Status refused = Check(alice, {{CallerRole::kServer}, {}});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusMessage(refused),
            "'F/cert.pem' is of spiffe://hone/submit/alice, which may not do this; it takes the "
            "role server (honed issue server NAME)");
}

TEST_F(CredentialCheckTest, AnEndCountsWhereItIsAskedFor) {
  const Credentials w1 = Issued(CallerRole::kMeasure, "w1");
  EXPECT_EQ(Check(w1, {{CallerRole::kMeasure}, kNow + 3599}), absl::OkStatus());
  EXPECT_EQ(StatusMessage(Check(w1, {{CallerRole::kMeasure}, kNow + 3600})),
            "'F/cert.pem' of spiffe://hone/measure/w1 has expired at 2030-03-17T18:46:40Z; issue "
            "a new one (honed issue measure w1)");
  // Long over by the machine's own clock or not yet begun: that is not asked.
  EXPECT_EQ(Check(w1), absl::OkStatus());
}

}  // namespace
}  // namespace hone::server
