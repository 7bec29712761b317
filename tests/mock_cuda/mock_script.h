#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hone::mock_cuda {

/// What the machine of the mock driver is and does wrong: lines of the file mock_cuda.script beside
/// the library as it was loaded, for tests that start programs. A line is a word and its value.
///     time real        events tell the clock's time; else each is 0.25 ms after the one before
///     slow 3           kernels take three times as long
///     lie 1000         events tell a thousandth of the time
///     memory 1048576   bytes of the device
///     capability 90, multiprocessors 4, cuda 12040, name NAME, uuid 7 (of the first device)
///     devices 2        of one kind, with the next uuids
///     driver 550.1, power 700000, clock 1980, temperature 41    what the management library says
///     hang NAME        a kernel whose name has this in it never ends
///     lose NAME        launching it loses the device: every call fails from then on
///     dead 0           the device of this number cannot be opened
///     wrong            outputs of 32 bytes and more come back with a bit turned
///     fault CALL 3 700 the third call of this name fails with this CUresult
struct Script {
  bool real_time = false, wrong = false;
  double slow = 1, lie = 1;
  size_t memory_bytes = size_t{1} << 30;
  int capability = 90, multiprocessors = 1, cuda = 12000, uuid = 1, devices = 1, dead = -1;
  std::string name = "mock GPU", hang, lose;
  std::string driver = "550.54.15";
  unsigned power = 700'000, clock = 1980, temperature = 41;
  std::string fault_call;
  int fault_after = 0, fault_code = 0;
};

/// Read when it is first asked for. Without a file: as above.
const Script& TheScript();

}  // namespace hone::mock_cuda
