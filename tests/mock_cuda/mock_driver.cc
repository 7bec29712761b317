#include "tests/mock_cuda/mock_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "tests/mock_cuda/mock_map.h"
#include "tests/mock_cuda/mock_script.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/program.h"

// A CUDA driver (libcuda.so.1) for a GPU that is not there: kernels are executed from their PTX
// (tests/ptx). What is asynchronous happens as late as it may, when somebody waits.
namespace hone::mock_cuda {
namespace {

using Work = std::function<int()>;

constexpr int kInvalid = 1, kOutOfMemory = 2, kInvalidDevice = 101, kNoImage = 200,
              kIllegalAddress = 700, kLaunchFailed = 719, kUnavailable = 46, kNotFound = 500,
              kInvalidCluster = 912;
constexpr int64_t kDeclaredShared = 48 << 10;
constexpr int64_t kForeverNs = int64_t{3600} * 1'000'000'000, kTickNs = 250'000;

struct Stream {
  std::vector<Work> waiting;
  std::vector<Work>* captured = nullptr;
};
struct Module {
  int program = 0;
};
struct Function {
  int program = 0;
  std::string name;
  // What it may be launched with; a cluster of 8 is what every device of 9.0 has.
  int64_t most_dynamic = 0;
  int64_t most_cluster = 8;
};
/// CUlaunchConfig, cuda.h.
struct LaunchConfig {
  struct Attribute {
    int id;
    char pad[4];
    unsigned value[16];
  };
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const Attribute* attributes;
  unsigned num_attributes;
};
struct Event {
  int64_t at_ns = 0;
};
struct Graph {
  std::vector<Work> work;
};

/// All of the machine. Calls come from one thread at a time.
struct Machine {
  size_t used_bytes = 0;
  ptx::Device device;
  std::map<uint64_t, size_t> allocated;
  Stream legacy;
  int lost = 0;  ///< the error that every call gives from now on
  std::string fault_call = TheScript().fault_call;
  int fault_after = TheScript().fault_after, fault_code = TheScript().fault_code;
  SystemMonotonicClock clock;
  uint64_t seed = 1;
  std::string last_error;
};

Machine& The() {
  static Machine machine;
  return machine;
}

/// What a call gives before it does anything: 0, or a scripted error. Those of a device that is
/// lost stay.
int Enter(const char* call) {
  Machine& m = The();
  if (m.lost != 0) return m.lost;
  if (m.fault_call != call || --m.fault_after > 0) return 0;
  m.fault_call.clear();
  if (m.fault_code >= kIllegalAddress) m.lost = m.fault_code;
  return m.fault_code;
}

Stream& StreamOf(void* stream) {
  return stream == nullptr ? The().legacy : *static_cast<Stream*>(stream);
}

int Submit(void* stream, Work work) {
  Stream& s = StreamOf(stream);
  (s.captured != nullptr ? *s.captured : s.waiting).push_back(std::move(work));
  return 0;
}

/// Does all that waits. A kernel that does what it must not is a fault of the device.
int Drain(Stream& stream) {
  const std::vector<Work> work = std::move(stream.waiting);
  stream.waiting.clear();
  for (const Work& each : work) {
    if (const int code = each(); code != 0) return The().lost = code;
  }
  return 0;
}

int RunKernel(const Function& function, const ptx::Launch& launch) {
  Machine& m = The();
  ptx::Launch seeded = launch;
  seeded.seed = m.seed++;
  const auto named = [&](const std::string& part) {
    return !part.empty() && function.name.find(part) != std::string::npos;
  };
  if (named(TheScript().hang)) m.clock.SleepNs(kForeverNs);
  if (named(TheScript().lose)) return kLaunchFailed;
  const int64_t start_ns = m.clock.NowNs();
  const absl::Status status = m.device.Run(function.program, function.name, seeded);
  if (const double more = TheScript().slow - 1; more > 0) {
    m.clock.SleepNs(static_cast<int64_t>(more * static_cast<double>(m.clock.NowNs() - start_ns)));
  }
  if (status.ok()) return 0;
  m.last_error = std::string(status.message());
  return kIllegalAddress;
}

int64_t DeclaredBytes(const Function& function) {
  int64_t bytes = 0;
  const ptx::Kernel* const kernel = The().device.KernelOf(function.program, function.name);
  for (const ptx::Variable& v : kernel->variables)
    bytes += v.space == ptx::Space::kShared ? v.bytes : 0;
  return bytes;
}

/// Shared memory that a block may ask for: CUDA C++ Programming Guide, "Compute Capabilities".
int64_t MostShared() {
  const int capability = TheScript().capability;
  const int64_t kib = capability == 80 ? 163 : capability < 90 ? 99 : 227;
  return kib << 10;
}

/// Whether a tensor map was made here, of memory that is there.
bool IsMap(const std::vector<uint8_t>& bytes) {
  const std::optional<TensorMap> map = MapIn(bytes);
  return map && The().device.Read(map->address, map->bytes).size() == map->bytes;
}

int Launch(const ptx::Launch& shape, const int64_t (&cluster)[3], const Function& function,
           void* stream, void** parameters) {
  constexpr int64_t kMostX = (int64_t{1} << 31) - 1, kMostYZ = 65'535, kMostBlockZ = 64;
  const ptx::Kernel* const kernel = The().device.KernelOf(function.program, function.name);
  if (kernel == nullptr) return kInvalid;
  ptx::Launch launch = shape;
  int64_t threads = 1, blocks = 1;
  for (int k = 0; k < 3; ++k) {
    if (launch.grid[k] < 1 || launch.grid[k] > (k == 0 ? kMostX : kMostYZ)) return kInvalid;
    if (launch.block[k] < 1) return kInvalid;
    threads *= launch.block[k];
    if (cluster[k] < 1 || launch.grid[k] % cluster[k] != 0) return kInvalidCluster;
    blocks *= cluster[k];
  }
  if (threads > 1024 || launch.block[2] > kMostBlockZ) return kInvalid;
  if (blocks > function.most_cluster || (blocks > 1 && TheScript().capability < 90))
    return kInvalidCluster;
  if (launch.shared_bytes > function.most_dynamic) return kInvalid;
  for (size_t i = 0; i < kernel->parameters.size(); ++i) {
    const auto bytes = static_cast<size_t>(kernel->parameters[i].bytes);
    if (bytes <= 8) {
      launch.parameters.push_back(*static_cast<const uint64_t*>(parameters[i]));
      continue;
    }
    const auto* const begin = static_cast<const uint8_t*>(parameters[i]);
    launch.wide.emplace_back(begin, begin + bytes);
    if (bytes != 128 || !IsMap(launch.wide.back())) return kInvalid;
  }
  return Submit(stream, [function, launch] { return RunKernel(function, launch); });
}

}  // namespace
}  // namespace hone::mock_cuda

using namespace hone::mock_cuda;  // NOLINT(google-build-using-namespace)
using hone::ptx::ParsePtx;

#define ENTER(name) \
  if (const int code = Enter(name); code != 0) return code

extern "C" {

void MockCudaFault(const char* call, int after, int code) {
  Machine& m = The();
  m.fault_call = call;
  m.fault_after = after;
  m.fault_code = code;
  m.lost = 0;
}
const char* MockCudaLastError() { return The().last_error.c_str(); }
size_t MockCudaUsedBytes() { return The().used_bytes; }

int cuInit(unsigned) {
  ENTER("cuInit");
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  ENTER("cuDeviceGet");
  *device = ordinal;
  return ordinal >= 0 && ordinal < TheScript().devices ? 0 : kInvalidDevice;
}
int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  ENTER("cuDeviceGetUuid_v2");
  std::fill_n(bytes, 16, static_cast<unsigned char>(0));
  bytes[15] = static_cast<unsigned char>(TheScript().uuid + device);
  return 0;
}
int cuDeviceGetPCIBusId(char* id, int size, int device) {
  ENTER("cuDeviceGetPCIBusId");
  // Slices are of one card.
  const bool slices = TheScript().name.find(" MIG ") != std::string::npos;
  std::snprintf(id, static_cast<size_t>(size), "0000:%02x:00.0", 0x65 + (slices ? 0 : device));
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER("cuDeviceTotalMem_v2");
  *bytes = TheScript().memory_bytes;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER("cuDeviceGetAttribute");
  // By number of CUdevice_attribute, cuda.h; clocks in kHz.
  static const std::map<int, int> values = {{13, 1'000'000},
                                            {16, TheScript().multiprocessors},
                                            {36, 2'000'000},
                                            {38, 1 << 15},  // bytes of L2
                                            {75, TheScript().capability / 10},
                                            {76, TheScript().capability % 10},
                                            {97, static_cast<int>(MostShared())}};
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalid;
  *value = found->second;
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(size), "%s", TheScript().name.c_str());
  return 0;
}
int cuDriverGetVersion(int* version) {
  ENTER("cuDriverGetVersion");
  *version = TheScript().cuda;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  if (device == TheScript().dead) return kUnavailable;
  *context = &The();
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) {
  ENTER("cuCtxSetCurrent");
  return 0;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  ENTER("cuModuleLoadDataEx");
  auto program = ParsePtx(static_cast<const char*>(image));
  if (!program.ok()) {
    The().last_error = std::string(program.status().message());
    return kNoImage;
  }
  *module = new Module{The().device.Load(*std::move(program))};
  return 0;
}
int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER("cuModuleGetFunction");
  static std::vector<std::unique_ptr<Function>> functions;
  auto made = std::make_unique<Function>(Function{static_cast<Module*>(module)->program, name});
  if (The().device.KernelOf(made->program, name) == nullptr) return kNotFound;
  made->most_dynamic = kDeclaredShared - DeclaredBytes(*made);
  functions.push_back(std::move(made));
  *function = functions.back().get();
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED
  constexpr int kMostDynamic = 8, kLargeClusters = 13;
  Function& of = *static_cast<Function*>(function);
  if (attribute == kLargeClusters) {
    of.most_cluster = value != 0 ? 16 : 8;
    return 0;
  }
  if (attribute != kMostDynamic || value < 0 || value > MostShared() - DeclaredBytes(of))
    return kInvalid;
  of.most_dynamic = value;
  return 0;
}

int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  ENTER("cuMemAlloc_v2");
  Machine& m = The();
  if (bytes == 0) return kInvalid;
  if (m.used_bytes + bytes > TheScript().memory_bytes) return kOutOfMemory;
  m.used_bytes += bytes;
  *pointer = m.device.Add(std::vector<uint8_t>(bytes), false);
  m.allocated[*pointer] = bytes;
  return 0;
}
int cuMemFree_v2(uint64_t pointer) {
  Machine& m = The();
  const auto found = m.allocated.find(pointer);
  if (found == m.allocated.end()) return kInvalid;
  m.used_bytes -= found->second;
  m.allocated.erase(found);
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = TheScript().memory_bytes;
  *free = *total - The().used_bytes;
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  return Submit(stream, [=] {
    const auto* begin = static_cast<const uint8_t*>(from);
    return The().device.Write(to, {begin, bytes}) ? 0 : kIllegalAddress;
  });
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  return Submit(stream, [=] {
    const auto found = The().device.Read(from, bytes);
    if (found.size() != bytes) return kIllegalAddress;
    std::memcpy(to, found.data(), bytes);
    // Outputs are larger than what kernels say of themselves; a runner also looks at pages that lie
    // around its buffers.
    constexpr size_t kOutput = 32, kZone = 4096;
    if (TheScript().wrong && bytes >= kOutput && bytes != kZone)
      static_cast<uint8_t*>(to)[bytes - 1] ^= 0x40;
    return 0;
  });
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  return Submit(stream, [=] {
    const auto found = The().device.Read(from, bytes);
    if (found.size() != bytes) return kIllegalAddress;
    const std::vector<uint8_t> copy(found.begin(), found.end());
    return The().device.Write(to, copy) ? 0 : kIllegalAddress;
  });
}
int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  if (The().device.Read(pointer, 1).empty()) return kInvalid;
  constexpr int kMemoryType = 2, kMemoryTypeDevice = 2;
  *static_cast<int*>(value) = attribute == kMemoryType ? kMemoryTypeDevice : 0;
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  ENTER("cuMemsetD8Async");
  return Submit(stream, [=] {
    return The().device.Write(to, std::vector<uint8_t>(bytes, value)) ? 0 : kIllegalAddress;
  });
}

int cuStreamCreate(void** stream, unsigned) {
  ENTER("cuStreamCreate");
  *stream = new Stream;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
int cuStreamSynchronize(void* stream) {
  ENTER("cuStreamSynchronize");
  return Drain(StreamOf(stream));
}
int cuStreamBeginCapture_v2(void* stream, int) {
  ENTER("cuStreamBeginCapture_v2");
  StreamOf(stream).captured = new std::vector<Work>;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  Stream& s = StreamOf(stream);
  *graph = new Graph{std::move(*s.captured)};
  delete s.captured;
  s.captured = nullptr;
  ENTER("cuStreamEndCapture");
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  *executable = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  ENTER("cuGraphLaunch");
  for (const Work& work : static_cast<Graph*>(executable)->work) Submit(stream, work);
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return 0;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}

int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void* stream, void** parameters, void**) {
  ENTER("cuLaunchKernel");
  const hone::ptx::Launch launch = {.grid = {grid_x, grid_y, grid_z},
                                    .block = {block_x, block_y, block_z},
                                    .parameters = {},
                                    .wide = {},
                                    .shared_bytes = shared};
  return Launch(launch, {1, 1, 1}, *static_cast<Function*>(function), stream, parameters);
}
int cuLaunchKernelEx(const LaunchConfig* config, void* function, void** parameters, void**) {
  ENTER("cuLaunchKernelEx");
  const LaunchConfig& c = *config;
  const hone::ptx::Launch launch = {.grid = {c.grid[0], c.grid[1], c.grid[2]},
                                    .block = {c.block[0], c.block[1], c.block[2]},
                                    .parameters = {},
                                    .wide = {},
                                    .shared_bytes = c.shared_bytes};
  int64_t cluster[3] = {1, 1, 1};
  constexpr int kClusterDimension = 4;
  for (unsigned i = 0; i < c.num_attributes; ++i) {
    if (c.attributes[i].id != kClusterDimension) return kInvalid;
    for (int k = 0; k < 3; ++k) cluster[k] = c.attributes[i].value[k];
  }
  return Launch(launch, cluster, *static_cast<Function*>(function), c.stream, parameters);
}
int cuTensorMapEncodeTiled(void* to, int type, unsigned rank, uint64_t address,
                           const uint64_t* extents, const uint64_t* strides, const unsigned* box,
                           const unsigned* steps, int interleave, int swizzle, int, int) {
  ENTER("cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(to) % 64 != 0 || interleave != 0) return kInvalid;
  const auto bytes = MapBytes(type, rank, address, extents, strides, box, steps, swizzle);
  if (!bytes) return kInvalid;
  std::memcpy(to, bytes->data(), bytes->size());
  return 0;
}

int cuEventCreate(void** event, unsigned) {
  ENTER("cuEventCreate");
  *event = new Event;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  ENTER("cuEventRecord");
  return Submit(stream, [event] {
    static_cast<Event*>(event)->at_ns = The().clock.NowNs();
    return 0;
  });
}
int cuEventRecordWithFlags(void* event, void* stream, unsigned) {
  ENTER("cuEventRecordWithFlags");
  return cuEventRecord(event, stream);
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  ENTER("cuEventElapsedTime");
  const int64_t took_ns = static_cast<Event*>(end)->at_ns - static_cast<Event*>(begin)->at_ns;
  const auto ns = static_cast<double>(TheScript().real_time ? took_ns : kTickNs);
  *milliseconds = static_cast<float>(1e-6 * ns / TheScript().lie);
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : "an error by script or by the executor";
  return 0;
}

}  // extern "C"
