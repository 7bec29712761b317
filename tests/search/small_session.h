#pragma once

#include <stdexcept>

#include "search/tuning_session.h"
#include "tests/search/fake_measurer.h"

// What tests of sessions over TwoTasks share.
namespace hone::search {

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

inline SessionOptions Options(int64_t trials) {
  SessionOptions o;
  o.request = "{\"model\":\"m\"}";
  o.versions = "{}";
  o.seed = 3;
  o.trials = trials;
  o.seconds = 0;
  o.target = TestTarget();
  o.device = {"class", "fingerprint"};
  o.builder_version = "1+22.1";
  return o;
}

}  // namespace hone::search
