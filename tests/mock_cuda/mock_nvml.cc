#include <cstdio>

#include "tests/mock_cuda/mock_script.h"

// NVIDIA's management library (libnvidia-ml.so.1) for the GPU of the mock driver: it tells what the
// script says.
using hone::mock_cuda::TheScript;

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%s", TheScript().driver.c_str());
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int card;
  *device = &card;
  return 0;
}
int nvmlDeviceGetPowerManagementLimit(void*, unsigned* milliwatts) {
  *milliwatts = TheScript().power;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = TheScript().power / 2;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) {
  *degrees = TheScript().temperature;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* megahertz) {
  *megahertz = TheScript().clock;
  return 0;
}

}  // extern "C"
