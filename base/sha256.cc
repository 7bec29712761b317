#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/core/check.h"

namespace hone {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) { HONE_CHECK(context != nullptr); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }

  void Start() { HONE_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }

  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { state_->Start(); }

Sha256::~Sha256() = default;

void Sha256::Update(std::string_view bytes) {
  HONE_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::FinishHex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HONE_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1);
  state_->Start();
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kDigits[digest.at(i) >> 4];
    hex += kDigits[digest.at(i) & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.FinishHex();
}

}  // namespace hone
