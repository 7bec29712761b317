#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cpu.h"
#include "base/core/status_macros.h"
#include "base/versions.h"
#include "hone/hone.h"
#include "runtime/context.h"
#include "runtime/executable.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/spin_budget.h"
#include "runtime/thread_pool.h"

using hone::Result;
using hone::Status;
using hone::StatusCode;
using hone::runtime::Context;
using hone::runtime::Executable;
using hone::runtime::InputBuffer;
using hone::runtime::Invalid;
using hone::runtime::OutputBuffer;
using hone::runtime::ThreadPool;

struct hone_model {
  std::shared_ptr<const Executable> executable;
  std::vector<hone_tensor_info> inputs, outputs;
};

struct hone_context {
  std::unique_ptr<Context> context;
};

namespace {

static_assert(HONE_F64 == static_cast<int>(hone::ir::DType::kF64) &&
              HONE_BF16 == static_cast<int>(hone::ir::DType::kBF16));
static_assert(HONE_DATA_LOSS == static_cast<int>(StatusCode::kDataLoss) &&
              HONE_OUT_OF_RANGE == static_cast<int>(StatusCode::kOutOfRange));

constexpr int32_t kMostSpinUs = 1'000'000;

// The usual way of C: the message waits in the thread that failed.
thread_local std::string last_error;

hone_status Report(const Status& status) {
  if (!status.ok()) last_error = status.message();
  return static_cast<hone_status>(status.code());
}

/// Runs `body`, and makes a status of its result or of what it throws: nothing may fly through C.
template <typename Body>
hone_status Guarded(Body body) noexcept {
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return Report({StatusCode::kResourceExhausted, "out of memory"});
  } catch (const std::exception& error) {
    return Report({StatusCode::kInternal, error.what()});
  }
}

/// The caller's options over the defaults; fields that an older caller does not know keep theirs.
template <typename Options>
Status ReadOptions(const Options* given, Options& options) {
  if (given == nullptr) return {};
  if (given->struct_bytes < sizeof(size_t) || given->struct_bytes > sizeof(Options)) {
    return Invalid("options of ", given->struct_bytes, " bytes, this library knows ",
                   sizeof(Options), "; fill them with the _init function, or use a newer library");
  }
  std::memcpy(&options, given, given->struct_bytes);
  return {};
}

/// The defaults, as far as the caller's struct goes; what lies behind is not its.
template <typename Options>
void FillOptions(Options defaults, size_t struct_bytes, Options* options) {
  defaults.struct_bytes = struct_bytes;
  std::memset(static_cast<void*>(options), 0, struct_bytes);
  std::memcpy(static_cast<void*>(options), &defaults, std::min(struct_bytes, sizeof(defaults)));
}

std::vector<hone_tensor_info> TensorInfos(const std::vector<hone::ir::PlanValue>& values) {
  std::vector<hone_tensor_info> infos;
  for (const hone::ir::PlanValue& value : values) {
    const Result<int64_t> bytes = hone::runtime::DenseBytes(value.dtype, value.shape);
    infos.push_back({.name = value.name.c_str(),
                     .dtype = static_cast<hone_dtype>(value.dtype),
                     .rank = static_cast<int32_t>(value.shape.size()),
                     .shape = value.shape.data(),
                     .bytes = static_cast<size_t>(*bytes)});  // the loader has checked it
  }
  return infos;
}

/// Opens with `open(options)` and wraps the result.
template <typename Open>
hone_status OpenModel(const hone_model_options* given, hone_model** model, Open open) {
  if (model == nullptr) return Report(Invalid("the place for the model is NULL"));
  *model = nullptr;
  return Guarded([&]() -> Status {
    hone_model_options options;
    hone_model_options_fill(&options, sizeof(options));
    HONE_RETURN_IF_ERROR(ReadOptions(given, options));
    Executable::Options executable_options;
    executable_options.copy_constants = options.copy_constants != 0;
    executable_options.in_place = options.in_place != 0;
    executable_options.cores = hone::UsableCores();
    auto opened = std::make_unique<hone_model>();
    HONE_ASSIGN_OR_RETURN(opened->executable, open(executable_options));
    opened->inputs = TensorInfos(opened->executable->plan().inputs);
    opened->outputs = TensorInfos(opened->executable->plan().outputs);
    *model = opened.release();
    return {};
  });
}

/// A number from the environment; `otherwise` where there is none.
Result<int32_t> FromEnvironment(const char* name, int32_t otherwise, int32_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  int32_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, number);
  if (code != std::errc() || stop != end || number < 0 || number > most) {
    return Invalid("the environment says ", name, "=", text, "; give a number from 0 to ", most);
  }
  return number;
}

/// The threads that the contexts of this process share: as many as each context asked for, added
/// up to the cores, and at least as many as this one asks for. They end with the last context that
/// uses them. A child process after fork has its own.
Result<std::shared_ptr<ThreadPool>> SharedThreads(int threads, int64_t spin_ns) {
  static std::mutex mutex;
  static std::weak_ptr<ThreadPool> shared;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<ThreadPool> pool = shared.lock();
  if (pool != nullptr && !pool->IsForked()) {
    const int all = std::min(pool->threads() + threads, hone::UsableCores());
    HONE_RETURN_IF_ERROR(pool->Grow(std::max(threads, all)));
    return pool;
  }
  HONE_ASSIGN_OR_RETURN(pool, pool != nullptr
                                  ? ThreadPool::InThisProcess(std::move(pool), threads)
                                  : ThreadPool::Create({.threads = threads, .spin_ns = spin_ns}));
  HONE_RETURN_IF_ERROR(pool->Grow(threads));
  shared = pool;
  return pool;
}

/// What a context is made with: the caller's options, then the environment, then the machine.
Result<Context::Options> ContextOptions(const hone_context_options& given,
                                        const Executable& executable) {
  Context::Options options{
      .threads = given.threads, .pin = given.pin != 0, .poison = given.poison != 0};
  if (options.threads == 0) {
    HONE_ASSIGN_OR_RETURN(options.threads,
                          FromEnvironment("HONE_THREADS", 0, hone::runtime::kMaxThreads));
  }
  if (options.threads == 0) {
    options.threads = std::min(executable.threads(), hone::UsableCores());
  }
  int32_t spin_us = given.spin_us;
  if (spin_us < 0) {
    const int64_t most_ns =
        hone::runtime::SpinWithin(ThreadPool::kSpinNs, options.threads, hone::CgroupCpuLimit());
    HONE_ASSIGN_OR_RETURN(spin_us, FromEnvironment("HONE_SPIN_US",
                                                   static_cast<int32_t>(most_ns / 1000),
                                                   kMostSpinUs));
  }
  options.spin_ns = int64_t{1000} * spin_us;
  if (given.node_copies != 0) options.node_of_cpu = hone::NodeOfEachCpu(hone::AllowedCpus());
  options.executor = {.parallel_for = given.parallel_for, .self = given.executor};
  const bool shares = given.pin == 0 && given.own_threads == 0 && given.parallel_for == nullptr;
  if (shares && options.threads > 1 && options.threads <= hone::runtime::kMaxThreads) {
    HONE_ASSIGN_OR_RETURN(options.pool, SharedThreads(options.threads, options.spin_ns));
  }
  return options;
}

const hone::MonotonicClock* ProfileClock() {
  static const hone::SystemMonotonicClock clock;
  return &clock;
}

}  // namespace

const char* hone_version(void) { return hone::kProgramVersion; }

const char* hone_status_name(hone_status status) {
  return hone::StatusCodeName(static_cast<StatusCode>(status));
}

const char* hone_last_error(void) { return last_error.c_str(); }

void hone_model_options_fill(hone_model_options* options, size_t struct_bytes) {
  FillOptions(hone_model_options{}, struct_bytes, options);
}

hone_status hone_model_open(const char* path, const hone_model_options* options,
                            hone_model** model) {
  return OpenModel(options, model,
                   [&](const Executable::Options& o) -> Result<std::shared_ptr<const Executable>> {
                     if (path == nullptr) return Invalid("the path is NULL");
                     return Executable::Open(path, o);
                   });
}

hone_status hone_model_open_memory(const void* data, size_t bytes,
                                   const hone_model_options* options, hone_model** model) {
  return OpenModel(options, model,
                   [&](const Executable::Options& o) -> Result<std::shared_ptr<const Executable>> {
                     if (data == nullptr) return Invalid("the package is NULL");
                     return Executable::OpenMemory({static_cast<const std::byte*>(data), bytes}, o);
                   });
}

void hone_model_close(hone_model* model) { delete model; }

const char* hone_model_target(const hone_model* model) {
  return model->executable->info().target.c_str();
}

const char* hone_model_device_class(const hone_model* model) {
  return model->executable->info().device_class.c_str();
}

size_t hone_model_input_count(const hone_model* model) { return model->inputs.size(); }

size_t hone_model_output_count(const hone_model* model) { return model->outputs.size(); }

const hone_tensor_info* hone_model_input(const hone_model* model, size_t index) {
  return index < model->inputs.size() ? &model->inputs[index] : nullptr;
}

const hone_tensor_info* hone_model_output(const hone_model* model, size_t index) {
  return index < model->outputs.size() ? &model->outputs[index] : nullptr;
}

void hone_context_options_fill(hone_context_options* options, size_t struct_bytes) {
  hone_context_options defaults{};
  defaults.spin_us = -1;
  FillOptions(defaults, struct_bytes, options);
}

// Programs that were built before there was _fill call these, with structs of that time.
HONE_API void OlderModelOptions(hone_model_options* options) __asm__("hone_model_options_init");
void OlderModelOptions(hone_model_options* options) { hone_model_options_fill(options, 16); }
HONE_API void OlderContextOptions(hone_context_options* options) __asm__(
    "hone_context_options_init");
void OlderContextOptions(hone_context_options* options) { hone_context_options_fill(options, 48); }

hone_status hone_context_create(hone_model* model, const hone_context_options* given,
                                hone_context** context) {
  if (context == nullptr) return Report(Invalid("the place for the context is NULL"));
  *context = nullptr;
  return Guarded([&]() -> Status {
    if (model == nullptr) return Invalid("the model is NULL");
    hone_context_options options;
    hone_context_options_fill(&options, sizeof(options));
    HONE_RETURN_IF_ERROR(ReadOptions(given, options));
    auto created = std::make_unique<hone_context>();
    HONE_ASSIGN_OR_RETURN(Context::Options context_options,
                          ContextOptions(options, *model->executable));
    if (options.profile != 0) context_options.profile_clock = ProfileClock();
    HONE_ASSIGN_OR_RETURN(created->context, Context::Create(model->executable, context_options));
    *context = created.release();
    return {};
  });
}

void hone_context_destroy(hone_context* context) { delete context; }

int32_t hone_context_threads(const hone_context* context) { return context->context->threads(); }

hone_status hone_context_run(hone_context* context, const hone_input* inputs, size_t input_count,
                             const hone_output* outputs, size_t output_count) {
  return Guarded([&]() -> Status {
    if (context == nullptr) return Invalid("the context is NULL");
    if ((inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0)) {
      return Invalid("the list of inputs or outputs is NULL");
    }
    std::vector<InputBuffer> in;
    for (size_t i = 0; i < input_count; ++i) in.push_back({inputs[i].data, inputs[i].bytes});
    std::vector<OutputBuffer> out;
    for (size_t i = 0; i < output_count; ++i) out.push_back({outputs[i].data, outputs[i].bytes});
    return context->context->Run(in, out);
  });
}

hone_status hone_context_set_stream(hone_context* context, void* stream) {
  return Guarded([&]() -> Status {
    if (context == nullptr) return Invalid("the context is NULL");
    return context->context->SetStream(stream);
  });
}

size_t hone_context_step_count(const hone_context* context) {
  return context->context->executable().plan().steps.size();
}

hone_status hone_context_step(const hone_context* context, size_t index, hone_step_info* info) {
  return Guarded([&]() -> Status {
    if (context == nullptr || info == nullptr) return Invalid("the context or the info is NULL");
    const Executable& executable = context->context->executable();
    const hone::ir::Plan& plan = executable.plan();
    if (index >= plan.steps.size()) return Invalid("step ", index, " of ", plan.steps.size());
    const auto times_ns = context->context->step_times_ns();
    *info = {.name = "", .rung = "", .record_id = "", .is_kernel = 0, .time_ns = -1};
    if (!times_ns.empty()) info->time_ns = times_ns[index];
    const hone::ir::PlanStep& step = plan.steps[index];
    if (step.kind == hone::ir::PlanStepKind::kExtern) {
      info->name = step.extern_name.c_str();
      return {};
    }
    const auto kernel = static_cast<size_t>(step.kernel);
    info->name = plan.kernels[kernel].workload_hash.c_str();
    info->rung = executable.info().kernels[kernel].rung.c_str();
    info->record_id = executable.info().kernels[kernel].record_id.c_str();
    info->is_kernel = 1;
    return {};
  });
}
