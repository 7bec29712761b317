#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace hone {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view bytes);

  /// The digest of everything so far as 64 lower-case hexadecimal digits; starts anew.
  std::string FinishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace hone
